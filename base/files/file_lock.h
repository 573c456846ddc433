// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_FILE_LOCK_H_
#define TUG_BASE_FILES_FILE_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// Locks on files and folders (flock); the kernel holds them until the descriptor is closed or the
// process dies. Thread-safe. Errors: those of the file system, naming `path`; LockError's.

// Blocks until no other process holds the lock. Creates `path` if it is missing, as TryFileLock
// does.
absl::StatusOr<FileDescriptor> AwaitFileLock(const std::string& path);
// Does not block. An invalid descriptor: another process holds the lock.
absl::StatusOr<FileDescriptor> TryFileLock(const std::string& path);

// Locks an existing folder. Does not block. An invalid descriptor: another process holds the lock.
absl::StatusOr<FileDescriptor> TryFolderLock(const std::string& path);

// Error of a failed flock: FileError's; FAILED_PRECONDITION if the file system has no locks, such
// as Lustre mounted without them.
absl::Status LockError(int error_number, const std::string& path);

}  // namespace tug

#endif  // TUG_BASE_FILES_FILE_LOCK_H_
