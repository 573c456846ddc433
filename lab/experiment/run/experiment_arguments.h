// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_ARGUMENTS_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_ARGUMENTS_H_

// Checks that options of `tug experiment offload` share. Errors: INVALID_ARGUMENT, naming the
// option. Pure.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {

inline constexpr double kMaxServers = 256;  // as cluster.servers in proto/job.proto

absl::Status CheckNumber(const char* option, double value, double least, double most);

// Parses the values of a list. Duplicates are an error.
template <typename T>
absl::StatusOr<std::vector<T>> ParseList(const char* option, const std::vector<std::string>& texts,
                                         absl::StatusOr<T> (*parse)(const std::string&)) {
  std::vector<T> values;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(T value, parse(text));
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", text, " is named twice"));
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_ARGUMENTS_H_
