// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_FILE_LIMIT_H_
#define TUG_BASE_FILES_FILE_LIMIT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tug {

// Minimum for a daemon of the smallest job.
constexpr unsigned kMinOpenFiles = 64;
// Descriptors reserved for files, unavailable to connections; fewer if the limit is low.
constexpr unsigned kFileReserve = 32;

// Raises this process's limit on open files to the hard limit less a reserve: sockets and shared
// memory grow with the lanes and workers of a host, and the usual soft limit (1,024) only protects
// programs that use select(), which these do not. Call once at the start of a daemon's main.
// Errors: RESOURCE_EXHAUSTED if the hard limit is below kMinOpenFiles.
absl::Status RaiseFileLimit();

// Calls `open`, which returns whether it failed for lack of a descriptor. While it does, calls it
// again, each time with one more descriptor from the reserve. Files can thus be opened
// (base/files/file.h) even when connections use all other descriptors. Before RaiseFileLimit the
// reserve is empty. Thread-safe.
void OpenWithReserve(absl::FunctionRef<bool()> open);

}  // namespace tug

#endif  // TUG_BASE_FILES_FILE_LIMIT_H_
