// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_ALGORITHMS_H_
#define TUG_COLLECTIVE_ALGORITHMS_H_

// The table of all-reduce algorithms. A new algorithm is a file, a test and a row in the table.
// Each leaves the same bits on all ranks, except where NaNs meet: the surviving payload depends on
// the order of the two operands, which may differ between ranks.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// Settings that some algorithms use. Must be the same on all ranks.
struct AllReduceSettings {
  uint32_t parts = 1;  // of algorithms with has_parts: number of parts of a buffer
  // Lower bound on the part size in WithBestParts. A transport batches small messages
  // (record_batch.h); parts of one batch arrive together, so they give no pipelining.
  uint64_t min_part_bytes = 0;
  // Used by hierarchical. Ranks 0, 1, ... are on the first host, and so on; the last host may have
  // fewer.
  uint32_t ranks_per_host = 1;
  // Chunk size of messages, for the cost of hierarchical (hierarchical.h). 0: messages do not
  // overlap.
  uint64_t chunk_bytes = 0;
  // Links between ranks of a host. REQUIRED by the cost of hierarchical if ranks_per_host > 1; else
  // not used.
  std::optional<LinkCost> within_host;

  friend bool operator==(const AllReduceSettings&, const AllReduceSettings&) = default;
};

struct AllReduceAlgorithm {
  const char* name;
  bool has_parts;
  CollectiveSchedule (*schedule)(uint32_t rank, uint32_t world, const AllReduceSettings& settings);
  // The cost formula of the algorithm's header: hierarchical on hosts, all others on one switch
  // (cost.h). `bytes`: one rank's buffer.
  double (*seconds)(const LinkCost& link, uint32_t world, uint64_t bytes,
                    const AllReduceSettings& settings);
};

std::span<const AllReduceAlgorithm> AllReduceAlgorithms();
// Null if the name is unknown.
const AllReduceAlgorithm* FindAllReduce(std::string_view name);

// Returns the settings with the cheapest `parts`, a power of two up to 256.
AllReduceSettings WithBestParts(const AllReduceAlgorithm& algorithm, const LinkCost& link,
                                uint32_t world, uint64_t bytes, AllReduceSettings settings);

struct AllReduceChoice {
  const AllReduceAlgorithm* algorithm = nullptr;
  AllReduceSettings settings;
  double seconds = 0;
};
// `auto`: the cheapest algorithm, each with its best parts; on a tie, the first in the table. Costs
// within 1e-9 of each other count as equal: some algorithms coincide in some worlds (a torus of one
// row is a ring; of two rows and two columns, halving and doubling), but their costs are rounded
// differently. Pure: ranks that pass the same numbers choose the same algorithm.
AllReduceChoice PickAllReduce(const LinkCost& link, uint32_t world, uint64_t bytes,
                              const AllReduceSettings& settings);

}  // namespace tug

#endif  // TUG_COLLECTIVE_ALGORITHMS_H_
