// SPDX-License-Identifier: Apache-2.0
#include "process/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/status_macros.h"

namespace tug {

absl::StatusOr<Pipe> NewPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return FileError(errno, "make", "a pipe");
  return Pipe{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

absl::StatusOr<FileDescriptor> InMemory(const std::string& text) {
  FileDescriptor fd(memfd_create("tug-input", MFD_CLOEXEC));
  if (!fd.valid() || fchmod(fd.get(), 0600) != 0)
    return FileError(errno, "make", "a file in memory");
  RETURN_IF_ERROR(WriteAll(fd.get(), "a file in memory", std::as_bytes(std::span(text))));
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

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
