// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_BINARY_TREE_H_
#define TUG_COLLECTIVE_SCHEDULES_BINARY_TREE_H_

// Pipelined binary tree (Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan"; this is a single tree). Rank 0 is the root, the children of rank
// v are 2v + 1 and 2v + 2. The buffer is cut into p parts.
//   1. Reduce: a rank adds the left child's part, then the right child's, and sends it up.
// Parts follow one another, one step apart, in both directions at once.
//
// At most 4 log2 N + 3 (p - 1) rounds (cost.h). An inner rank sends 3 S bytes (to its parent and
// two children), so a ring or halving-doubling is better for large buffers. Large buffers need many
// parts, small ones one.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// REQUIRES: parts >= 1.
CollectiveSchedule BinaryTreeAllReduce(uint32_t rank, uint32_t world, uint32_t parts);

// For a message of a part, t = alpha + S/p beta, and r = t + S/p gamma if it is summed:
//   the first part's way up and down, + (p - 1) times what the busiest rank receives for a part.
// Up: the sum of children x r along the left edge (the right child's message waits for the left
// child's). Down: the longest path, t to a left child and 2 t to a right one (at most 2 log2 N t).
// The busiest rank receives r from each child and t from its parent: 2 r + t for N > 4. With
// several parts, simulation on a switch gives up to 1.2 times this if gamma is far below beta, else
// up to 1.35 times, since ports wait for one another (link_simulation_test.cc).
double BinaryTreeAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts,
                                  uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_BINARY_TREE_H_
