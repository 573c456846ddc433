// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_JOB_SOURCE_H_
#define TUG_LAUNCH_JOB_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "process/job_arguments.h"

namespace tug {

// Text of a job to start, and its name for messages.
struct JobSource {
  std::string text;
  std::string name;
};

// Reads the job file; without one, the job that --resume continues, with every setting of its
// checkpoint except what a coordinator and the machine determine, and trace, keys and mode of
// security. With train.init_from, fields of the model's shape that the job leaves unset are those
// of the weights (huggingface/weights_source.h); if these cannot be read here, the coordinator
// reports why. Errors: INVALID_ARGUMENT without either; those of ReadJobFile and FindCheckpoint.
absl::StatusOr<JobSource> ReadJob(const JobArguments& arguments);

}  // namespace tug

#endif  // TUG_LAUNCH_JOB_SOURCE_H_
