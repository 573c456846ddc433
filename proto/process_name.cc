// SPDX-License-Identifier: Apache-2.0
#include "proto/process_name.h"

#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/control.pb.h"

namespace tug {

std::string KindName(NodeKind kind) { return kind == SERVER ? kServerRole : kWorkerRole; }

std::string ProcessName(absl::string_view role, uint32_t index) {
  return absl::StrCat(role, "-", index);
}

std::optional<uint32_t> ProcessIndexOf(absl::string_view role, absl::string_view name) {
  uint32_t index = 0;
  absl::string_view digits = name;
  const bool parsed = absl::ConsumePrefix(&digits, role) && absl::ConsumePrefix(&digits, "-") &&
                      absl::SimpleAtoi(digits, &index);
  // Other spellings of the number ("worker-01") are no names.
  if (!parsed || index >= kProcessIndexLimit || name != ProcessName(role, index)) {
    return std::nullopt;
  }
  return index;
}

std::string LifeText(uint32_t life) {
  constexpr const char* kOrdinals[] = {"first", "second", "third", "fourth", "fifth"};
  if (life == 0 || life > std::size(kOrdinals)) return absl::StrCat("life ", life);
  return absl::StrCat(kOrdinals[life - 1], " life");
}

}  // namespace tug
