// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"

namespace tug {
namespace {

absl::StatusOr<FileDescriptor> TakeLock(FileDescriptor fd, const std::string& path, int operation) {
  while (flock(fd.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) return FileDescriptor();
    if (errno != EINTR) return LockError(errno, path);
  }
  return fd;
}

absl::StatusOr<FileDescriptor> LockFile(const std::string& path, int operation) {
  FileDescriptor fd = OpenFile(path, O_RDWR | O_CREAT);
  if (!fd.valid()) return FileError(errno, "create the lock", path);
  return TakeLock(std::move(fd), path, operation);
}

}  // namespace

absl::StatusOr<FileDescriptor> AwaitFileLock(const std::string& path) {
  return LockFile(path, LOCK_EX);
}

absl::StatusOr<FileDescriptor> TryFileLock(const std::string& path) {
  return LockFile(path, LOCK_EX | LOCK_NB);
}

absl::StatusOr<FileDescriptor> TryFolderLock(const std::string& path) {
  FileDescriptor fd = OpenFile(path, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return FileError(errno, "open the folder", path);
  return TakeLock(std::move(fd), path, LOCK_EX | LOCK_NB);
}

absl::Status LockError(int error_number, const std::string& path) {
  if (error_number != ENOSYS && error_number != EOPNOTSUPP && error_number != ENOLCK) {
    return FileError(error_number, "lock", path);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot lock ", path, ": its file system does not support locks (",
      std::strerror(error_number),
      "); mount it with locks (Lustre: -o flock), or choose a folder on another file system"));
}

}  // namespace tug
