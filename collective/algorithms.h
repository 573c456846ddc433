#ifndef TUG_COLLECTIVE_ALGORITHMS_H_
#define TUG_COLLECTIVE_ALGORITHMS_H_

// The table of all-reduce algorithms, each in a file of its own. Another one is a file, a test and
// a row here. All leave the same bits on all ranks; but where NaNs meet, which payload is left
// depends on the order of the two operands, which may differ between ranks.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// What some of them need to know besides. Must be the same on all ranks.
struct AllReduceSettings {
  uint32_t parts = 1;  // of those that have_parts: in how many a buffer is cut
  // The best parts are not smaller: what a transport sends together (record_batch.h) arrives
  // together, so parts that it would are no pipeline.
  uint64_t least_part_bytes = 0;
  // Ranks 0, 1, ... are on the first host, and so on; the last may have fewer. hierarchical is made
  // for them; rows of torus_2d are hosts, if all are full.
  uint32_t ranks_per_host = 1;
  // For the cost of hierarchical (hierarchical.h): what messages are cut into; 0: they overlap with
  // no others.
  uint64_t chunk_bytes = 0;
  // Of links between ranks of a host. REQUIRED by costs if ranks_per_host > 1; else not used.
  std::optional<LinkCost> within_host;

  friend bool operator==(const AllReduceSettings&, const AllReduceSettings&) = default;
};

struct AllReduceAlgorithm {
  const char* name;
  bool has_parts;
  CollectiveSchedule (*schedule)(uint32_t rank, uint32_t world, const AllReduceSettings& settings);
  // The formula of its header: on one switch (cost.h), hierarchical on hosts. `bytes`: of a rank's
  // buffer.
  double (*seconds)(const LinkCost& link, uint32_t world, uint64_t bytes,
                    const AllReduceSettings& settings);
};

std::span<const AllReduceAlgorithm> AllReduceAlgorithms();
// Null if there is none of that name.
const AllReduceAlgorithm* FindAllReduce(std::string_view name);
// All schedules of a world, in order of rank.
std::vector<CollectiveSchedule> AllReduceFamily(const AllReduceAlgorithm& algorithm, uint32_t world,
                                                const AllReduceSettings& settings);

// What it costs on hosts of `ranks_per_host`, with `link` between them. With one rank a host that
// is the formula. With several their port is shared, which no formula of a switch knows: then it is
// simulated (link_simulation.h): with 28 ranks PickAllReduce then takes half a second. Pure.
double AllReduceSeconds(const AllReduceAlgorithm& algorithm, const LinkCost& link, uint32_t world,
                        uint64_t bytes, const AllReduceSettings& settings);
// The settings with the parts, a power of two up to 256, of which it costs least.
AllReduceSettings WithBestParts(const AllReduceAlgorithm& algorithm, const LinkCost& link,
                                uint32_t world, uint64_t bytes, AllReduceSettings settings);

struct AllReduceChoice {
  const AllReduceAlgorithm* algorithm = nullptr;
  AllReduceSettings settings;
  double seconds = 0;
};
// `auto`: the one that costs least, of several the first in the table, with the best parts for it.
// Costs within 1e-9 of each other are the same: some algorithms are another one in some worlds (a
// torus of one row is a ring, of two rows and two columns halving and doubling), but their costs
// are rounded otherwise. A pure function: ranks that give it the same numbers choose the same.
AllReduceChoice PickAllReduce(const LinkCost& link, uint32_t world, uint64_t bytes,
                              const AllReduceSettings& settings);

}  // namespace tug

#endif  // TUG_COLLECTIVE_ALGORITHMS_H_
