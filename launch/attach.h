// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_ATTACH_H_
#define TUG_LAUNCH_ATTACH_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// The launcher's end of a connection (launch/remote_program.h): a local process that represents a
// program on another host. Connects, sends the program to run and regular signs of life; prints the
// program's output to stdout, each line behind its prefix; writes what the program wrote to its
// --ready-fd to `ready_fd` (-1: none); forwards SIGINT, while SIGTERM kills the program. In the end
// it writes the program's last words to log_path (LastWords), and this process exits like the
// program, or by SIGHUP if the connection is lost. Returns only errors from before there is a
// connection. `path`: of an Attachment. REQUIRES: the process has one thread.
absl::Status Attach(const std::string& path, int ready_fd);

}  // namespace tug

#endif  // TUG_LAUNCH_ATTACH_H_
