#ifndef TUG_CLI_POLICY_NAMES_H_
#define TUG_CLI_POLICY_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// Of --policies: "fifo", "priority", "bytescheduler" or "auto", as reports name them. Errors:
// INVALID_ARGUMENT, naming the option. Pure.
absl::StatusOr<CommConfig::Scheduler> ParsePolicy(const std::string& name);

}  // namespace tug

#endif  // TUG_CLI_POLICY_NAMES_H_
