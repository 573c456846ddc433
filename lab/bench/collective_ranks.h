// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_COLLECTIVE_RANKS_H_
#define TUG_LAB_BENCH_COLLECTIVE_RANKS_H_

// Ranks that run collectives on request, one process each.
//
//   CollectiveRanks ranks;
//   RETURN_IF_ERROR(ranks.Start(setting));
//   ASSIGN_OR_RETURN(double seconds, ranks.TimeAllReduce(*FindAllReduce("ring"), {}, bytes, 10));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collective/algorithms.h"
#include "collective/element_type.h"
#include "limits/bench_processes.h"

namespace tug {

struct CollectiveSetting {
  uint32_t world = 2;
  bool shared_memory = false;
  bool checksum = true;  // for TCP
  ElementType type = ElementType::kFp32;
  uint64_t max_size_bytes = 0;  // largest buffer
  uint64_t chunk_bytes = 0;     // per message; 0: the default
  // Network namespaces, assigned to the ranks in turn; empty: ours.
  std::vector<std::string> hosts;
};

// Not thread-safe. REQUIRES: as BenchProcesses.
class CollectiveRanks {
 public:
  absl::Status Start(const CollectiveSetting& setting);
  // Memory that each rank touches: its buffer, and the same again for TimeSum.
  static uint64_t MemoryBytes(const CollectiveSetting& setting) {
    return 2 * setting.max_size_bytes;
  }

  // Seconds per call of `count` consecutive calls, on the slowest rank. REQUIRES, here and below:
  // whole elements, at most max_size_bytes; count > 0.
  absl::StatusOr<double> TimeAllReduce(const AllReduceAlgorithm& algorithm,
                                       const AllReduceSettings& settings, uint64_t bytes,
                                       uint64_t count);
  // TimeAllReduce for a step in which every rank sends `bytes` to the next one and receives as
  // many. REQUIRES: `bytes` of all ranks together are at most max_size_bytes.
  absl::StatusOr<double> TimeNeighbours(uint64_t bytes, uint64_t count);
  // Seconds of a sum of `bytes` in memory, on all ranks at once.
  absl::StatusOr<double> TimeSum(uint64_t bytes, uint64_t count);

 private:
  absl::StatusOr<double> TimeOrder(const std::string& order);

  BenchProcesses processes_;
  uint32_t world_ = 0;
};

}  // namespace tug

#endif  // TUG_LAB_BENCH_COLLECTIVE_RANKS_H_
