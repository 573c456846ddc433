#ifndef TUG_BASE_STANDARD_ERROR_H_
#define TUG_BASE_STANDARD_ERROR_H_

// Standard error: what a process says to people while it works. No thread ever waits for the
// reader, which may be a terminal after Ctrl-S, a frozen ssh connection or a full pipe. Text waits
// in memory, at most PipeWriter::kMostBytes of it, and is written with the text that follows it;
// beyond that, lines are left out, and a line says how many. A reader that is gone ends nothing.
//
// Results go to stdout instead, once there is nothing left to decide (cli/standard_streams.h).
// Thread-safe.

#include <string>

#include "absl/strings/string_view.h"

namespace tug {

bool StandardErrorIsTerminal();

// `text` is one or more whole lines, or else progress that the next text overwrites. Progress is
// left out while earlier text waits.
void WriteStandardError(absl::string_view text);

// "text\n".
void SayOnStandardError(absl::string_view text);

// Before the process ends: returns when all is written, the reader is gone, or a second is over.
void FlushStandardError();

// Writes a line and aborts: for broken invariants (base/check.h).
[[noreturn]] void Die(absl::string_view text);

}  // namespace tug

#endif  // TUG_BASE_STANDARD_ERROR_H_
