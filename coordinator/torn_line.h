#ifndef TUG_COORDINATOR_TORN_LINE_H_
#define TUG_COORDINATOR_TORN_LINE_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// Cuts off what stands behind the last newline of a file: a line that a process was writing when it
// was killed, or for which the disk had no room. What is appended then begins a line. A file that
// is missing, or is no regular one, is left alone. Errors: those of the file system, naming the
// file.
absl::Status CutTornLine(const std::string& path);

}  // namespace tug

#endif  // TUG_COORDINATOR_TORN_LINE_H_
