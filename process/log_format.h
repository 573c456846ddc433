// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_LOG_FORMAT_H_
#define TUG_PROCESS_LOG_FORMAT_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// Sets the format of log lines (base/log.h) from the environment variable TUG_LOG_FORMAT: "text",
// the default (also if empty), or "json". Child processes inherit it. Errors: INVALID_ARGUMENT,
// another name.
absl::Status ChooseLogFormat();

// True for "json": all messages, including errors, are log lines, and no progress is shown.
bool LogIsForMachines();

// A line on stderr, below a progress line of another process; with "json" a log line.
void Tell(const std::string& text);

// "tug: warning: text" on stderr; with "json" a log line.
void Warn(const std::string& text);

}  // namespace tug

#endif  // TUG_PROCESS_LOG_FORMAT_H_
