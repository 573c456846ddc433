#ifndef TUG_CLI_ATTEND_H_
#define TUG_CLI_ATTEND_H_

#include "absl/status/statusor.h"

namespace tug {

// The end of a connection of `tug launch` that is with the program (cli/remote_program.h): reads
// from our stdin what to run, runs it, passes signals down and what it says up our stdout, and
// returns its wait status, SIGHUP where we have ended it. When the connection ends, or the launcher
// is silent for too long, the program is ended, within kEndTime + 1 s, unless it is detached; the
// kernel ends it when we die. Errors: INVALID_ARGUMENT, what came is not to be understood.
// REQUIRES: the process has one thread.
absl::StatusOr<int> Attend();

}  // namespace tug

#endif  // TUG_CLI_ATTEND_H_
