// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_ATTEND_H_
#define TUG_LAUNCH_ATTEND_H_

#include "absl/status/statusor.h"

namespace tug {

// The program's end of a connection of `tug launch` (launch/remote_program.h): reads from stdin
// what to run, runs it, forwards signals to it and its output to stdout, and returns its wait
// status, or SIGHUP if it was ended here. If the connection ends, or the launcher is silent for too
// long, it ends the program within kEndTime + 1 s, unless the program is detached; the kernel kills
// the program if this process dies. Errors: INVALID_ARGUMENT (cannot parse what to run). REQUIRES:
// the process has one thread.
absl::StatusOr<int> Attend();

}  // namespace tug

#endif  // TUG_LAUNCH_ATTEND_H_
