#ifndef TUG_COLLECTIVE_BINARY_TREE_H_
#define TUG_COLLECTIVE_BINARY_TREE_H_

// Pipelined binary tree (Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan"; this is a single tree). Rank 0 is the root, the children of rank
// v are 2v + 1 and 2v + 2. The buffer is cut into p parts.
//   1. Reduce: a rank adds the left child's part, then the right child's, and sends it up.
//   2. Broadcast: the root sends the part down as soon as it has it.
// Parts follow each other a step apart, in both directions at once.
//
// 4 log2 N + 3 (p - 1) rounds at most (cost.h); an inner rank sends 3 S bytes (to its parent and
// two children), which is why a ring or halving-doubling is better for large buffers. Many parts
// are better for large buffers, one for small ones.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// REQUIRES: parts >= 1.
CollectiveSchedule BinaryTreeAllReduce(uint32_t rank, uint32_t world, uint32_t parts);

// With a message of a part t = alpha + S/p beta, and r = t + S/p gamma where it is summed:
//   the first part's way up and down, + (p - 1) times what the busiest rank receives for a part.
// Up: the sum of children x r along the left edge (the right child's waits for the left child's);
// down: the longest path, t to a left child and 2 t to a right one (2 log2 N t at most). The
// busiest rank receives r of each child and t of its parent: 2 r + t with N > 4. With several parts
// a simulation on a switch takes up to 1.2 of it with gamma far below beta, up to 1.35 else, since
// ports wait for one another (link_simulation_test.cc).
double BinaryTreeAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts,
                                  uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_BINARY_TREE_H_
