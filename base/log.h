// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_LOG_H_
#define TUG_BASE_LOG_H_

// Log of a process: one line per message on stderr, through spdlog, as text or as JSON (one line):
//
//   2026-11-23T05:50:16.123Z warning worker-2: it does not answer address=10.0.0.1:7070
//
//   {"time":"2026-11-23T05:50:16.123Z","level":"warning","process":"worker-2",
//    "message":"it does not answer","address":"10.0.0.1:7070"}
//
// SetLogFile adds a copy in a file.
//
// Levels: info, for rare events of a job, never once per step (metrics.jsonl has the steps,
// docs/metrics.md); warning; error. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace tug {

enum class LogFormat { kText, kJson };

// Parses "text" and "json"; none for anything else.
std::optional<LogFormat> ParseLogFormat(std::string_view text);

// Sets the form of later lines, and the name of this process that they begin with
// (proto/process_name.h). Default: text, no name.
void SetLogFormat(LogFormat format);
void SetLogProcess(const std::string& name);

// Fields kept apart from the message: {{"address", "10.0.0.1:7070"}}.
using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

void LogInfo(std::string_view message, LogFields fields = {});
void LogWarning(std::string_view message, LogFields fields = {});
void LogError(std::string_view message, LogFields fields = {});

// Appends lines from now on to a file too. A file of kLogFileBytes becomes
// NAME.1.log, which replaces an older one of that name, and a new one begins. A write that fails
// loses its line. Another call begins another file. Errors: INTERNAL if a file cannot be opened.
absl::Status SetLogFile(const std::string& path);
inline constexpr size_t kLogFileBytes = size_t{16} << 20;

// Writes to the file of SetLogFile alone: what the user reads on the terminal in another form.
enum class LogLevel { kInfo, kWarning, kError };
void LogInFile(LogLevel level, std::string_view message);

}  // namespace tug

#endif  // TUG_BASE_LOG_H_
