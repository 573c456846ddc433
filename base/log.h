#ifndef TUG_BASE_LOG_H_
#define TUG_BASE_LOG_H_

// What a process says while it runs, a line each on stderr, through spdlog. As text, and as JSON
// (one line):
//
//   2026-11-23T05:50:16.123Z warning worker 2: it does not answer address=10.0.0.1:7070
//
//   {"time":"2026-11-23T05:50:16.123Z","level":"warning","role":"worker","rank":2,
//    "message":"it does not answer","address":"10.0.0.1:7070"}
//
// Levels: info, for what happens a few times in a job, never once a step (what steps did:
// metrics.jsonl, docs/metrics.md); warning; error. Thread-safe.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tug {

enum class LogFormat { kText, kJson };

// "text", "json".
std::optional<LogFormat> ParseLogFormat(std::string_view text);

// From here on lines have this form, and begin with the process's name: role ("worker"), and rank
// (its node id; 0: not known yet, or the coordinator). Before the first call: text, no name.
void SetLogFormat(LogFormat format);
void SetLogProcess(const std::string& role, uint32_t rank);

// Told apart from the message: {{"address", "10.0.0.1:7070"}}.
using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

void LogInfo(std::string_view message, LogFields fields = {});
void LogWarning(std::string_view message, LogFields fields = {});
void LogError(std::string_view message, LogFields fields = {});

}  // namespace tug

#endif  // TUG_BASE_LOG_H_
