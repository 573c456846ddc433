// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TORN_LINE_H_
#define TUG_COORDINATOR_TORN_LINE_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// Truncates a file after its last newline: removes a line that a process was writing when it was
// killed, or for which the disk had no room, so that the next append begins a line. No effect on a
// missing or non-regular file. Errors: those of the file system, naming the file.
absl::Status CutTornLine(const std::string& path);

}  // namespace tug

#endif  // TUG_COORDINATOR_TORN_LINE_H_
