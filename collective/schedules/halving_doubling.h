// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_HALVING_DOUBLING_H_
#define TUG_COLLECTIVE_SCHEDULES_HALVING_DOUBLING_H_

// Recursive halving and doubling (Rabenseifner 2004, "Optimization of collective reduction
// operations"). P: the largest power of two in N; P parts. The N - P excess ranks are folded in
// before and get the result afterwards, as in MPICH (fold.h).
//   1. Recursive halving: in round k, ranks 2^k apart split the parts they still share; each sends
//      one half and sums the other. After log2 P rounds each rank has the sum of one part.
//   2. Recursive doubling: the same pairs, in the opposite order, send each other what they have.
// The largest halves go to the nearest ranks.
//
// 2 log2 P rounds; each participating rank sends 2 (P - 1) / P S bytes: the bytes of a ring in
// fewer rounds, so the best between small and large buffers if N is a power of two. Otherwise the
// fold adds 2 rounds and S bytes each way. (Rabenseifner's own fold takes at most (3 + 2 log2 P)
// alpha + 4 S beta + 3/2 S gamma; this one (2 + 2 log2 P) alpha + 4 S beta + 2 S gamma.)

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

CollectiveSchedule HalvingDoublingAllReduce(uint32_t rank, uint32_t world);

// 2 log2 P alpha + (P - 1) / P S (2 beta + gamma); if N is not P, + 2 (alpha + S beta) + S gamma.
double HalvingDoublingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_HALVING_DOUBLING_H_
