#ifndef TUG_COLLECTIVE_ALGORITHMS_H_
#define TUG_COLLECTIVE_ALGORITHMS_H_

// The table of all-reduce algorithms, each in a file of its own. Another one is a file, a test and
// a row here. All leave the same bits on all ranks.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// What some of them need to know besides. Must be the same on all ranks.
struct AllReduceSettings {
  uint32_t parts = 1;           // binary_tree, mesh_2d: in how many parts a buffer is cut
  uint32_t ranks_per_host = 1;  // hierarchical: ranks 0, 1, ... of the first host, and so on
  LinkCost within_host;         // hierarchical: cost only

  friend bool operator==(const AllReduceSettings&, const AllReduceSettings&) = default;
};

struct AllReduceAlgorithm {
  const char* name;
  Schedule (*schedule)(uint32_t rank, uint32_t world, const AllReduceSettings& settings);
  // On one switch (cost.h). `bytes`: of a rank's buffer.
  double (*seconds)(const LinkCost& link, uint32_t world, uint64_t bytes,
                    const AllReduceSettings& settings);
  const char* source;
};

std::span<const AllReduceAlgorithm> AllReduceAlgorithms();
// Null if there is none of that name.
const AllReduceAlgorithm* FindAllReduce(std::string_view name);
// All schedules of a world, in order of rank.
std::vector<Schedule> AllReduceFamily(const AllReduceAlgorithm& algorithm, uint32_t world,
                                      const AllReduceSettings& settings);

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
