// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_WATCH_STATUS_WATCH_H_
#define TUG_CLI_WATCH_STATUS_WATCH_H_

#include "absl/status/status.h"
#include "process/job_arguments.h"

namespace tug {

// `tug status --watch`: shows a job (watch_view.h) about twice a second until it ends, whose
// outcome it prints, or the user presses q or Ctrl-C. If stdout is not a terminal: prints a block
// of lines without escape codes whenever a step is done or something else has changed. OK: the job
// ended in order, or the user quit. Errors: ABORTED, the job failed (with the reason) or did not
// end in order; UNAVAILABLE, the coordinator no longer replies.
absl::Status WatchStatus(const CoordinatorArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_WATCH_STATUS_WATCH_H_
