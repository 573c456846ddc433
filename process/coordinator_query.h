// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_COORDINATOR_QUERY_H_
#define TUG_PROCESS_COORDINATOR_QUERY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "control/control_client.h"
#include "process/job_arguments.h"

namespace tug {

// Connects to the coordinator of a job. Errors: INVALID_ARGUMENT (no coordinator given), NOT_FOUND
// (the job has ended, or the coordinator of another job has its address), UNAVAILABLE (no reply;
// with the remedy).
absl::StatusOr<std::unique_ptr<ControlClient>> ConnectTo(const CoordinatorArguments& arguments);

}  // namespace tug

#endif  // TUG_PROCESS_COORDINATOR_QUERY_H_
