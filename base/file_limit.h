#ifndef TUG_BASE_FILE_LIMIT_H_
#define TUG_BASE_FILE_LIMIT_H_

#include "absl/status/status.h"

namespace tug {

// What a daemon of the smallest job needs.
constexpr unsigned kLeastOpenFiles = 64;

// Lets this process open as many files as it may: sockets and shared memory grow with the lanes and
// workers of a host, and the usual soft limit (1,024) is there for programs that use select(),
// which ours do not. Called once at the start of a daemon's main. Errors: RESOURCE_EXHAUSTED, fewer
// than kLeastOpenFiles.
absl::Status RaiseFileLimit();

}  // namespace tug

#endif  // TUG_BASE_FILE_LIMIT_H_
