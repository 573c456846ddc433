#ifndef TUG_BASE_FILE_LOCK_H_
#define TUG_BASE_FILE_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// Locks of whole files (flock), which the kernel holds until the descriptor is closed or the
// process dies. Thread-safe. Errors: those of the file system, naming `path`; LockError's.

// Both open `path` and create it if it is missing.
// Blocks until no other process holds the lock.
absl::StatusOr<FileDescriptor> AwaitFileLock(const std::string& path);
// Does not block. An invalid descriptor: another process holds the lock.
absl::StatusOr<FileDescriptor> TryFileLock(const std::string& path);

// Locks an existing folder. Does not block. An invalid descriptor: another process holds the lock.
absl::StatusOr<FileDescriptor> TryFolderLock(const std::string& path);

// Why flock has failed: as FileError; FAILED_PRECONDITION where the file system has no locks, as
// Lustre mounted without them.
absl::Status LockError(int error_number, const std::string& path);

}  // namespace tug

#endif  // TUG_BASE_FILE_LOCK_H_
