#ifndef TUG_BASE_FILE_LOCK_H_
#define TUG_BASE_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// Both open `path`, create it if it is missing, and lock it (flock) until the descriptor is closed
// or the process dies. Thread-safe. Errors: those of the file system, naming `path`.

// Blocks until no other process holds the lock.
absl::StatusOr<FileDescriptor> AwaitFileLock(const std::string& path);
// Does not block. An invalid descriptor: another process holds the lock.
absl::StatusOr<FileDescriptor> TryFileLock(const std::string& path);

}  // namespace tug

#endif  // TUG_BASE_FILE_LOCK_H_
