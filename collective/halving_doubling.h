#ifndef TUG_COLLECTIVE_HALVING_DOUBLING_H_
#define TUG_COLLECTIVE_HALVING_DOUBLING_H_

// Recursive halving and doubling (Rabenseifner 2004, "Optimization of collective reduction
// operations"). P: the largest power of two in N; P parts. The N - P ranks too many are folded in
// before and get the result afterwards, as in MPICH (fold.h).
//   1. Recursive halving: in round k ranks 2^k apart share what both still have, each sends one
//      half and sums the other; log2 P rounds, after which each has the sum of one part.
//   2. Recursive doubling: the same pairs, in the opposite order, send each other what they have.
// The largest halves go to the nearest ranks.
//
// 2 log2 P rounds and 2 (P - 1) / P S bytes sent by each rank that takes part: the bytes of a ring
// in fewer rounds, so the best between small and large buffers where N is a power of two; else the
// fold adds 2 rounds and S bytes each way. (Rabenseifner's own way with the ranks too many takes
// (3 + 2 log2 P) alpha + 4 S beta + 3/2 S gamma at most; this one (2 + 2 log2 P) alpha + 4 S beta +
// 2 S gamma.)

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

CollectiveSchedule HalvingDoublingAllReduce(uint32_t rank, uint32_t world);

// 2 log2 P alpha + (P - 1) / P S (2 beta + gamma); if N is not P, + 2 (alpha + S beta) + S gamma.
double HalvingDoublingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_HALVING_DOUBLING_H_
