#include "cli/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace tug {

absl::StatusOr<Pipe> NewPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return FileError(errno, "make", "a pipe");
  return Pipe{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

std::optional<std::string> ReadWhatIsThere(int fd) {
  pollfd readable{fd, POLLIN, 0};
  if (poll(&readable, 1, 0) <= 0) return "";
  char bytes[1 << 14];
  const ssize_t got = read(fd, bytes, sizeof(bytes));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return "";
  if (got <= 0) return std::nullopt;
  return std::string(bytes, static_cast<size_t>(got));
}

}  // namespace tug
