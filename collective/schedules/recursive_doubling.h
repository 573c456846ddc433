// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_RECURSIVE_DOUBLING_H_
#define TUG_COLLECTIVE_SCHEDULES_RECURSIVE_DOUBLING_H_

// Recursive doubling, the butterfly (Thakur, Rabenseifner and Gropp 2005, "Optimization of
// collective communication operations in MPICH"): in round k ranks 2^k apart exchange all they have
// summed, and both sum it. One part. Any N: with P the largest power of two in N, the N - P excess
// ranks are folded in before and get the result afterwards (fold.h).
//
// log2 P rounds (cost.h), and 2 more if N is not P; each rank sends log2 P S bytes. The fewest
// rounds: best for small buffers. Both ranks of a pair add the same two numbers, so all have the
// same bits.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

CollectiveSchedule RecursiveDoublingAllReduce(uint32_t rank, uint32_t world);

// log2 P (alpha + S (beta + gamma)); if N is not P, + 2 (alpha + S beta) + S gamma.
double RecursiveDoublingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_RECURSIVE_DOUBLING_H_
