#ifndef TUG_COLLECTIVE_TORUS_2D_H_
#define TUG_COLLECTIVE_TORUS_2D_H_

// 2D torus (Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
// flash"): C columns (links within a machine), R rows (links between machines), every row and every
// column a ring (grid.h: MostSquare). N parts.
//   1. Reduce-scatter in the row: rank (row, column) has the row's sum of block `column`, R parts.
//   2. All-reduce of that block in the column, as a ring.
//   3. All-gather in the row.
//
// 2 (C - 1) + 2 (R - 1) rounds; 2 (N - 1) / N S bytes sent by each rank, as in a ring of N. With a
// prime N there is one row, and it is the ring.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

Schedule Torus2dAllReduce(uint32_t rank, uint32_t world);

// (C - 1) (2 alpha + S/C (2 beta + gamma)) + (R - 1) (2 alpha + S/N (2 beta + gamma)): as in a
// torus with a link for each neighbour, since a rank sends to one of them at a time.
double Torus2dAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_TORUS_2D_H_
