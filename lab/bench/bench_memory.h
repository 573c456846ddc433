// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_MEMORY_H_
#define TUG_LAB_BENCH_BENCH_MEMORY_H_

// Peak memory of a server process while real workers push to it over TCP, for several orders of
// arrival.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lab/bench/bench_job.h"

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
  uint64_t peak_bytes = 0;  // RssAnon of the server, sampled every 2 ms
  uint64_t line_bytes = 0;  // ServerMemoryLine
  uint64_t clocks = 0;      // completed by the workers in that time
};

const char* OrderName(BenchLoad::Order order);

// Each worker runs one virtual worker and pushes its whole gradient at once, like a fast backward
// pass; then pulls. The lane runs AdamW. REQUIRES: the process has one thread.
absl::StatusOr<MemoryFigures> MeasureMemory(const MemorySetting& setting);

// Resident anonymous memory of a process in bytes (/proc/PID/status); 0 if it has exited.
uint64_t AnonymousBytes(pid_t pid);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_MEMORY_H_
