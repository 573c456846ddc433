// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_RESTARTED_RUN_H_
#define TUG_LAUNCH_RESTARTED_RUN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "process/job_arguments.h"

namespace tug {

// For a job that Slurm has started again `restarts` times, because its nodes were preempted or
// lost, or its time was over: resumes from the newest checkpoint of the folder that --run-dir
// names, as with --resume. Moves the remains of a run without a checkpoint aside. Prints its action
// to stderr; does nothing at a first start, or without --run-dir. Errors: those of FindCheckpoint
// (a damaged checkpoint), of OwnRunFolder (a coordinator is running in the folder), of the file
// system.
absl::Status ResumeAfterRestart(uint32_t restarts, JobArguments& job);

}  // namespace tug

#endif  // TUG_LAUNCH_RESTARTED_RUN_H_
