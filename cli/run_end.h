#ifndef TUG_CLI_RUN_END_H_
#define TUG_CLI_RUN_END_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tug {

// How a run ended that ended in order: the last line of its metrics.jsonl
// (coordinator/metrics_log.h).
struct RunEnd {
  std::string reason;  // "done", "stopped", "stopped early"
  uint64_t step = 0;
};

// None: it runs, has failed, or the file cannot be read. Thread-safe.
std::optional<RunEnd> ReadRunEnd(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_CLI_RUN_END_H_
