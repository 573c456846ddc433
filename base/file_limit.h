#ifndef TUG_BASE_FILE_LIMIT_H_
#define TUG_BASE_FILE_LIMIT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tug {

// What a daemon of the smallest job needs.
constexpr unsigned kLeastOpenFiles = 64;
// Descriptors that only files get, not connections; fewer where the limit is low.
constexpr unsigned kFileReserve = 32;

// Lets this process open as many files as it may, less a reserve: sockets and shared memory grow
// with the lanes and workers of a host, and the usual soft limit (1,024) is there for programs that
// use select(), which ours do not. Called once at the start of a daemon's main. Errors:
// RESOURCE_EXHAUSTED, fewer than kLeastOpenFiles.
absl::Status RaiseFileLimit();

// Calls `open`, which returns whether it failed because no descriptor was left. While it does, this
// calls it again, each time with one more descriptor of the reserve. So files can be opened
// (base/file.h) even where connections hold all other descriptors. Before RaiseFileLimit there is
// no reserve. Thread-safe.
void OpenWithReserve(absl::FunctionRef<bool()> open);

}  // namespace tug

#endif  // TUG_BASE_FILE_LIMIT_H_
