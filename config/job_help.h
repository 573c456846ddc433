// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_JOB_HELP_H_
#define TUG_CONFIG_JOB_HELP_H_

// The manual of the job file: the text of proto/job.proto, with each field's default and range as
// the last sentence of its comment instead of as an option.

#include <string>

#include "absl/status/statusor.h"

namespace tug {

// Every field.
std::string JobHelp();

// One field ("train.steps"): its type, comment and, for an enum, its values; for a group of fields
// ("train"), all of them. Errors: NOT_FOUND as FindField.
absl::StatusOr<std::string> FieldHelp(const std::string& path);

}  // namespace tug

#endif  // TUG_CONFIG_JOB_HELP_H_
