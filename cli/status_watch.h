#ifndef TUG_CLI_STATUS_WATCH_H_
#define TUG_CLI_STATUS_WATCH_H_

#include "absl/status/status.h"
#include "cli/job_arguments.h"

namespace tug {

// `tug status --watch`: shows a job (watch_view.h) about twice a second until it ends, which is
// said, or q or Ctrl-C. On what is no terminal: a block of lines whenever a step is done or
// something else has changed, without escape codes. OK: the job ended in order, or nobody wants to
// see more. Errors: ABORTED, the job has failed and why; UNAVAILABLE, the coordinator does not
// answer any more.
absl::Status WatchStatus(const CoordinatorArguments& arguments);

}  // namespace tug

#endif  // TUG_CLI_STATUS_WATCH_H_
