// SPDX-License-Identifier: Apache-2.0
#include "process/policy_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tug {

absl::StatusOr<CommConfig::Scheduler> ParsePolicy(const std::string& name) {
  CommConfig::Scheduler scheduler;
  if (CommConfig::Scheduler_Parse(absl::AsciiStrToUpper(name), &scheduler) &&
      scheduler != CommConfig::SCHEDULER_DEFAULT && absl::AsciiStrToLower(name) == name) {
    return scheduler;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--policies ", name, ": unknown policy; use fifo (wfbp), priority, bytescheduler or auto"));
}

}  // namespace tug
