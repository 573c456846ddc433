// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_TORUS_H_
#define TUG_COLLECTIVE_SCHEDULES_TORUS_H_

// Torus: ranks in a grid of any number of dimensions, each line of which is a ring. N ranks, sides
// A x B x ...; rank = a + A (b + B (c + ...)). N parts.
//   1. Reduce-scatter along the first dimension (ring_phases.h): each rank has its line's sum of
//      one of A blocks.
//   2. Reduce-scatter of that block along the next dimension, and so on to the last.
//   3. All-gathers, from the last dimension to the first.
//
// 2 (A - 1) + 2 (B - 1) + ... rounds; each rank sends 2 (N - 1) / N S bytes, as in a ring of N,
// which it is if only one side is more than 1.
//
// Two dimensions: Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
// flash". There, rows are ranks of a host: reduce-scatter in the host, a ring across hosts for each
// rank of a host, all-gather in the host. Three dimensions (network): Jouppi et al. 2023, "TPU v4:
// an optically reconfigurable supercomputer for machine learning with hardware support for
// embeddings".

#include <cstdint>
#include <span>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// REQUIRES: rank < product of the sides.
CollectiveSchedule TorusAllReduce(uint32_t rank, std::span<const uint32_t> sides);

// (A - 1) (2 alpha + S/A (2 beta + gamma)) + (B - 1) (2 alpha + S/(A B) (2 beta + gamma)) + ...
double TorusAllReduceSeconds(const LinkCost& link, std::span<const uint32_t> sides, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_TORUS_H_
