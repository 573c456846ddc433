#ifndef TUG_CLI_COORDINATOR_QUERY_H_
#define TUG_CLI_COORDINATOR_QUERY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cli/job_arguments.h"
#include "proto/control_client.h"

namespace tug {

// To the coordinator of a job. Errors: INVALID_ARGUMENT (none is named), NOT_FOUND (the job has
// ended, or another one answers in its place), UNAVAILABLE (it does not answer, and what to do).
absl::StatusOr<std::unique_ptr<ControlClient>> ConnectTo(const CoordinatorArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_COORDINATOR_QUERY_H_
