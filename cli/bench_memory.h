#ifndef TUG_CLI_BENCH_MEMORY_H_
#define TUG_CLI_BENCH_MEMORY_H_

// What a server process holds at most while real workers push to it over TCP, whatever their order.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/bench_job.h"

namespace tug {

struct MemorySetting {
  uint64_t parameters = uint64_t{32} << 20;  // rounded up to whole partitions of 4 MiB
  uint32_t workers = 1;
  BenchLoad::Order order = BenchLoad::Order::kTogether;
  bool bf16 = false;
  uint64_t credit_bytes = uint64_t{32} << 20;  // of each worker
  absl::Duration length = absl::Seconds(2);
};

struct MemoryFigures {
  uint64_t peak_bytes = 0;  // RssAnon of the server, looked at every 2 ms
  uint64_t line_bytes = 0;  // ServerMemoryLine
  uint64_t clocks = 0;      // that the workers went through meanwhile
};

const char* OrderName(BenchLoad::Order order);

// Every worker carries one virtual worker and pushes its whole gradient at once, as a fast backward
// pass would; then pulls. The lane runs AdamW. REQUIRES: the process has one thread.
absl::StatusOr<MemoryFigures> MeasureMemory(const MemorySetting& setting);

// Bytes of anonymous memory that a process has resident (/proc/PID/status); 0 if it has gone.
uint64_t AnonymousBytes(pid_t pid);

}  // namespace tug

#endif  // TUG_CLI_BENCH_MEMORY_H_
