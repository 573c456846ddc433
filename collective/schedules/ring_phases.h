// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_RING_PHASES_H_
#define TUG_COLLECTIVE_SCHEDULES_RING_PHASES_H_

#include <cstdint>
#include <vector>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// A ring through some of the ranks, as one of them sees it, over some of the parts, cut into one
// block per rank of the ring. Building block of ring.h, hierarchical.h and, ring within ring,
// torus.h.
struct Ring {
  uint32_t first = 0;  // ranks first, first + stride, ...
  uint32_t stride = 1;
  uint32_t count = 1;       // number of ranks and of blocks
  uint32_t position = 0;    // of this rank in the ring
  uint32_t first_part = 0;  // block i is parts [first_part + i * block_parts, + block_parts)
  uint32_t block_parts = 1;
};

// Appends count - 1 steps, after which position i has the sum of block i: in step k, block i - 1 -
// k goes to the next rank, and i - 2 - k comes from the previous one and is summed.
void AppendRingReduceScatter(const Ring& ring, std::vector<Step>& steps);
// Appends count - 1 steps, after which all have all blocks: in step k, block i - k goes to the next
// rank. REQUIRES: position i has block i.
void AppendRingAllGather(const Ring& ring, std::vector<Step>& steps);

// Cost of both phases: (count - 1) (2 alpha + b (2 beta + gamma)), b = block_bytes.
inline constexpr double RingPhasesSeconds(const LinkCost& link, uint32_t count,
                                          double block_bytes) {
  return (count - 1) * (ReduceSeconds(link, block_bytes) + SendSeconds(link, block_bytes));
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_RING_PHASES_H_
