#ifndef TUG_CLI_ATTACH_H_
#define TUG_CLI_ATTACH_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// The launcher's end of a connection (cli/remote_program.h): stands, as a process here, for a
// program on another host. Connects, says what is to be run, and again and again that we live;
// shows what the program says on our stdout, each line behind its prefix; writes what it told its
// --ready-fd to `ready_fd` (-1: nobody asks); passes SIGINT on, while SIGTERM kills the program.
// Then the file log_path has what was said last (LastWords), and our process ends as the program
// did, or, when the connection is lost, by SIGHUP: it returns only with an error, before there is a
// connection. `path`: of an Attachment. REQUIRES: the process has one thread.
absl::Status Attach(const std::string& path, int ready_fd);

}  // namespace tug

#endif  // TUG_CLI_ATTACH_H_
