#ifndef TUG_COLLECTIVE_RING_PHASES_H_
#define TUG_COLLECTIVE_RING_PHASES_H_

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// A ring through some of the ranks, as one of them sees it, over some of the parts cut into as many
// blocks as it has ranks. Of it are made ring.h, hierarchical.h and, ring within ring, torus.h.
struct Ring {
  uint32_t first = 0;  // ranks first, first + stride, ...
  uint32_t stride = 1;
  uint32_t count = 1;       // ranks; blocks
  uint32_t position = 0;    // one's own in the ring
  uint32_t first_part = 0;  // block i is of parts [first_part + i * block_parts, + block_parts)
  uint32_t block_parts = 1;
  bool is_reversed = false;  // position 0 is the last of the ranks, count - 1 the first
};

// count - 1 steps, after which position i has the sum of block i: in step k block i - 1 - k goes to
// the next rank, and i - 2 - k comes from the one before and is summed.
void AppendRingReduceScatter(const Ring& ring, std::vector<Step>& steps);
// count - 1 steps, after which all have all blocks: in step k block i - k goes to the next rank.
// REQUIRES: position i has block i.
void AppendRingAllGather(const Ring& ring, std::vector<Step>& steps);

// Of both phases: (count - 1) (2 alpha + b (2 beta + gamma)), b = block_bytes.
inline constexpr double RingPhasesSeconds(const LinkCost& link, uint32_t count,
                                          double block_bytes) {
  return (count - 1) * (ReduceSeconds(link, block_bytes) + SendSeconds(link, block_bytes));
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_RING_PHASES_H_
