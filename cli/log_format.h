#ifndef TUG_CLI_LOG_FORMAT_H_
#define TUG_CLI_LOG_FORMAT_H_

#include <string>

#include "absl/status/status.h"

namespace tug {

// Lines of the log (base/log.h) have the form that the environment variable TUG_LOG_FORMAT names:
// "text", the default, or "json"; an empty name is none. Processes that this one starts have the
// same. Errors: INVALID_ARGUMENT, another name.
absl::Status ChooseLogFormat();

// With "json": whatever is said goes to the log, errors too, and progress is not shown.
bool LogIsForMachines();

// A line on stderr, below a progress line of another process; with "json" one of the log.
void Tell(const std::string& text);

// "tug: warning: text" on stderr; with "json" a line of the log.
void Warn(const std::string& text);

}  // namespace tug

#endif  // TUG_CLI_LOG_FORMAT_H_
