#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/file.h"

namespace tug {
namespace {

absl::StatusOr<FileDescriptor> LockFile(const std::string& path, int operation) {
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FileError(errno, "create the lock", path);
  while (flock(fd.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) return FileDescriptor();
    if (errno != EINTR) return FileError(errno, "lock", path);
  }
  return fd;
}

}  // namespace

absl::StatusOr<FileDescriptor> AwaitFileLock(const std::string& path) {
  return LockFile(path, LOCK_EX);
}

absl::StatusOr<FileDescriptor> TryFileLock(const std::string& path) {
  return LockFile(path, LOCK_EX | LOCK_NB);
}

}  // namespace tug
