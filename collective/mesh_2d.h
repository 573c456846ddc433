#ifndef TUG_COLLECTIVE_MESH_2D_H_
#define TUG_COLLECTIVE_MESH_2D_H_

// 2D mesh: R rows and C columns (grid.h: MostSquare) without the links that close rows and columns
// to rings (Ying et al. 2018, "Image classification at supercomputer scale", has the network). An
// all-reduce in each row, then one in each column. An open line has no ring, so ranks send to
// neighbours only, in p parts:
//   1. In a row, sums go to the first rank, part by part, and come back as they are done, so both
//      directions of every link are busy at once.
//   2. The same in a column, of what step 1 has left.
//
// Rounds: 2 (C - 1) + 2 (R - 1), + p - 1 on a mesh, + up to 4 (p - 1) on a switch. A rank sends S
// bytes over each of its links: up to 4 S, but on different links, where a rank of a torus sends 2
// (N - 1) / N S one after the other. Best where there is a link for each neighbour; on a switch all
// of it shares one port. With a prime N there is one row.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// REQUIRES: parts >= 1.
CollectiveSchedule Mesh2dAllReduce(uint32_t rank, uint32_t world, uint32_t parts);

// With a message of a part t = alpha + S/p beta, and r = t + S/p gamma where it is summed:
// (C - 1 + R - 1) (r + t) for the first part, + (p - 1) times what the busiest rank receives for a
// part: for each line of two ranks r, of more r + t. With several parts a simulation on a switch
// takes 0.8 to 1.2 of it with gamma far below beta, up to 1.35 else (link_simulation_test.cc).
double Mesh2dAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts, uint64_t bytes);
// On a mesh, with a link for each neighbour: (C - 1 + R - 1) (r + t) + (p - 1) r.
double Mesh2dAllReduceSecondsOnMesh(const LinkCost& link, uint32_t world, uint32_t parts,
                                    uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_MESH_2D_H_
