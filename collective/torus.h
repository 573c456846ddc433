#ifndef TUG_COLLECTIVE_TORUS_H_
#define TUG_COLLECTIVE_TORUS_H_

// Torus: ranks in a grid of any number of dimensions, every line of them a ring. N ranks, sides
// A x B x ...; rank = a + A (b + B (c + ...)). N parts.
//   1. Reduce-scatter along the first dimension (ring_phases.h): each rank has its line's sum of
//      one of A blocks.
//   2. Of that block, reduce-scatter along the next dimension, and so on to the last.
//   3. All-gathers, from the last dimension to the first.
//
// 2 (A - 1) + 2 (B - 1) + ... rounds; 2 (N - 1) / N S bytes sent by each rank, as in a ring of N,
// which it is if only one side is more than 1.
//
// Two dimensions: Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
// flash". There, rows are ranks of a host: reduce-scatter in the host, a ring across hosts for each
// rank of a host, all-gather in the host. Three: Jouppi et al. 2023, "TPU v4: an optically
// reconfigurable supercomputer for machine learning with hardware support for embeddings", has the
// network.
//
// A rank sends to one neighbour at a time. With a link for each neighbour, in both directions of d
// dimensions, 2 (N - 1) / N S / (2 d) bytes a link would do, by 2 d such all-reduces of as many
// pieces of the buffer, each in another order and direction; that is not done here.

#include <cstdint>
#include <span>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// REQUIRES: rank < product of the sides.
CollectiveSchedule TorusAllReduce(uint32_t rank, std::span<const uint32_t> sides);

// (A - 1) (2 alpha + S/A (2 beta + gamma)) + (B - 1) (2 alpha + S/(A B) (2 beta + gamma)) + ...: on
// a switch, and as much in a torus with a link for each neighbour.
double TorusAllReduceSeconds(const LinkCost& link, std::span<const uint32_t> sides, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_TORUS_H_
