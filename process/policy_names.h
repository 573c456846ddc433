// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_POLICY_NAMES_H_
#define TUG_PROCESS_POLICY_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// Parses a name of --policies: "fifo" or "wfbp", "priority", "bytescheduler" or "auto", as in
// reports. Errors: INVALID_ARGUMENT, naming the option. Pure.
absl::StatusOr<CommConfig::Scheduler> ParsePolicy(const std::string& name);

}  // namespace tug

#endif  // TUG_PROCESS_POLICY_NAMES_H_
