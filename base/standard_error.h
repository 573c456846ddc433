// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_STANDARD_ERROR_H_
#define TUG_BASE_STANDARD_ERROR_H_

// Standard error: a process's messages to the user while it runs. Threads never block on the
// reader, which may be a terminal after Ctrl-S, a frozen ssh connection or a full pipe. Unwritten
// text is buffered, up to PipeWriter::kByteLimit, and written with the next text; beyond that,
// lines are dropped, and a line reports how many. A closed reader is no error.
//
// Results go to stdout instead, once the outcome is final (process/standard_streams.h).
// Thread-safe.

#include <string>

#include "absl/strings/string_view.h"

namespace tug {

bool StandardErrorIsTerminal();

// `text`: one or more complete lines, or progress that the next text overwrites. Progress is
// dropped while earlier text is buffered.
void WriteStandardError(absl::string_view text);

// Writes "text\n".
void PrintLineToStderr(absl::string_view text);

// Call before the process exits: returns when everything is written, the reader is gone, or a
// second has passed.
void FlushStandardError();

// Writes a line and aborts: for broken invariants (base/check.h).
[[noreturn]] void Die(absl::string_view text);

}  // namespace tug

#endif  // TUG_BASE_STANDARD_ERROR_H_
