// SPDX-License-Identifier: Apache-2.0
#include "process/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

bool ReaderIsGone(int fd) {
  pollfd state{fd, POLLOUT, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0;
}

}  // namespace

void PrepareStandardStreams() {
  // open() returns the lowest free descriptor, which in ascending order is `stream` itself.
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) != stream) _exit(1);  // no stream to report the error on
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
}

absl::Status FlushResults() {
  const int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (reason == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  if (ReaderIsGone(STDOUT_FILENO)) {
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  // The reason of an earlier failed write is lost.
  return absl::InternalError(
      absl::StrCat("cannot write the result to stdout: ",
                   reason == 0 ? "the disk may be full" : std::strerror(reason)));
}

}  // namespace tug
