// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_RUN_END_H_
#define TUG_PROCESS_RUN_END_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tug {

// End of a run that ended in order: the last line of its metrics.jsonl
// (coordinator/observe/metrics_log.h).
struct RunEnd {
  std::string reason;  // "done", "stopped", "stopped early"
  uint64_t step = 0;
};

// Nothing if the run is active, has failed, or the file cannot be read. Thread-safe.
std::optional<RunEnd> ReadRunEnd(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_PROCESS_RUN_END_H_
