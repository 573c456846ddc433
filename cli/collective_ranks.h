#ifndef TUG_CLI_COLLECTIVE_RANKS_H_
#define TUG_CLI_COLLECTIVE_RANKS_H_

// Ranks that run collectives when they are told to, each a process of its own.
//
//   CollectiveRanks ranks;
//   RETURN_IF_ERROR(ranks.Start(setting));
//   ASSIGN_OR_RETURN(double seconds, ranks.TimeAllReduce(*FindAllReduce("ring"), {}, bytes, 10));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bench_processes.h"
#include "collective/algorithms.h"
#include "collective/element_type.h"

namespace tug {

struct CollectiveSetting {
  uint32_t world = 2;
  bool shared_memory = false;
  bool checksum = true;  // of what goes over TCP
  ElementType type = ElementType::kFp32;
  uint64_t most_bytes = 0;   // of a buffer
  uint64_t chunk_bytes = 0;  // of a message; 0: the default
  // Network namespaces, dealt to the ranks in turn; none: ours.
  std::vector<std::string> hosts;
};

// Not thread-safe. REQUIRES: as BenchProcesses.
class CollectiveRanks {
 public:
  absl::Status Start(const CollectiveSetting& setting);
  // That each rank touches: its buffer, and as much beside it for TimeSum.
  static uint64_t MemoryBytes(const CollectiveSetting& setting) { return 2 * setting.most_bytes; }

  // Seconds that one of `count` calls takes, one after another, on the slowest rank. REQUIRES, here
  // and below: whole elements, at most most_bytes; count > 0.
  absl::StatusOr<double> TimeAllReduce(const AllReduceAlgorithm& algorithm,
                                       const AllReduceSettings& settings, uint64_t bytes,
                                       uint64_t count);
  // The same of a step in which every rank sends so many bytes to the next one and receives as
  // many. REQUIRES: all ranks' together are at most most_bytes.
  absl::StatusOr<double> TimeNeighbours(uint64_t bytes, uint64_t count);
  // Seconds that the sum of so many bytes takes, in memory, on all ranks at once.
  absl::StatusOr<double> TimeSum(uint64_t bytes, uint64_t count);

 private:
  absl::StatusOr<double> TellAndHear(const std::string& order);

  BenchProcesses processes_;
  uint32_t world_ = 0;
};

}  // namespace tug

#endif  // TUG_CLI_COLLECTIVE_RANKS_H_
