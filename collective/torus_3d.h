#ifndef TUG_COLLECTIVE_TORUS_3D_H_
#define TUG_COLLECTIVE_TORUS_3D_H_

// 3D torus (Jouppi et al. 2023, "TPU v4: an optically reconfigurable supercomputer for machine
// learning with hardware support for embeddings", has the network): X x Y x Z ranks, every line of
// them a ring (grid.h: MostCubic). N parts.
//   1. Reduce-scatter along x: each rank has the line's sum of one of X blocks.
//   2. Of that block, reduce-scatter along y, and of what is left, along z.
//   3. All-gather along z, y and x.
//
// 2 (X - 1) + 2 (Y - 1) + 2 (Z - 1) rounds; 2 (N - 1) / N S bytes sent by each rank. With one layer
// it is the 2D torus, with one row the ring.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

Schedule Torus3dAllReduce(uint32_t rank, uint32_t world);

// (X - 1) (2 alpha + S/X (2 beta + gamma)) + (Y - 1) (2 alpha + S/(X Y) (2 beta + gamma)) +
// (Z - 1) (2 alpha + S/N (2 beta + gamma)): as in a torus with a link for each neighbour.
double Torus3dAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_TORUS_3D_H_
