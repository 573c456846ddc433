// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_MESH_2D_H_
#define TUG_COLLECTIVE_SCHEDULES_MESH_2D_H_

// 2D mesh: R rows and C columns (grid.h: MostSquare) without the links that close rows and columns
// to rings (network: Ying et al. 2018, "Image classification at supercomputer scale"). An
// all-reduce in each row, then one in each column. An open line is no ring, so ranks send to
// neighbours only, in p parts:
//   1. In a row, sums go to the first rank, part by part, and come back once complete, so both
//      directions of every link are busy at once.
//   2. The same in a column, on the result of step 1.
//
// Rounds: 2 (C - 1) + 2 (R - 1), + p - 1 on a mesh, + up to 4 (p - 1) on a switch. A rank sends S
// bytes over each of its links: up to 4 S in all, but on different links, whereas a rank of a torus
// sends 2 (N - 1) / N S one after the other. Best with a link for each neighbour; on a switch they
// all share one port. For prime N there is one row.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// REQUIRES: parts >= 1.
CollectiveSchedule Mesh2dAllReduce(uint32_t rank, uint32_t world, uint32_t parts);

// For a message of a part, t = alpha + S/p beta, and r = t + S/p gamma if it is summed: (C - 1 + R
// - 1) (r + t) for the first part, + (p - 1) times what the busiest rank receives for a part: r for
// each line of two ranks, r + t for each longer one. With several parts, simulation on a switch
// gives 0.8 to 1.2 times this if gamma is far below beta, else up to 1.35 times
// (link_simulation_test.cc).
double Mesh2dAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts, uint64_t bytes);
// On a mesh, with a link for each neighbour: (C - 1 + R - 1) (r + t) + (p - 1) r.
double Mesh2dAllReduceSecondsOnMesh(const LinkCost& link, uint32_t world, uint32_t parts,
                                    uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_MESH_2D_H_
