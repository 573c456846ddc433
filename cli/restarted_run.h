#ifndef TUG_CLI_RESTARTED_RUN_H_
#define TUG_CLI_RESTARTED_RUN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cli/job_arguments.h"

namespace tug {

// Of a job that Slurm has started again `restarts` times, because its nodes were wanted or lost, or
// its time was over: it goes on in the run folder that --run-dir names, from its newest checkpoint,
// as with --resume. What a run without a checkpoint has left is moved aside. Says on stderr what is
// done; does nothing at a first start, or without --run-dir. Errors: those of FindCheckpoint (a
// damaged checkpoint), those of OwnRunFolder (a coordinator is running in it), of the file system.
absl::Status GoOnAfterRestart(uint32_t restarts, JobArguments& job);

}  // namespace tug

#endif  // TUG_CLI_RESTARTED_RUN_H_
