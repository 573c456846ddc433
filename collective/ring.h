#ifndef TUG_COLLECTIVE_RING_H_
#define TUG_COLLECTIVE_RING_H_

// Ring (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations"): rank r sends to r + 1 and receives from r - 1. N parts for N ranks.
//   1. Reduce-scatter: a part goes once around and is summed on its way; it ends on its own rank.
//   2. All-gather: it goes around once more, as it is.
//
// All-reduce: 2 (N - 1) rounds, 2 (N - 1) / N S bytes sent by each rank: no algorithm sends fewer.
// Best for large buffers; each half is a collective by itself, with half of the rounds and bytes.
//
// A ring uses each link in one direction. The bidirectional one is two of them, with half of the
// buffer each, in opposite directions: 2 N parts, twice the messages. With links of its own, full
// rate in both directions, that is half of the ring's bytes a link; behind one port nothing is won.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

// Pure, as all schedules. REQUIRES, here and in the others: rank < world.
CollectiveSchedule RingAllReduce(uint32_t rank, uint32_t world);
CollectiveSchedule BidirectionalRingAllReduce(uint32_t rank, uint32_t world);
// Rank r ends with the sum of part r.
CollectiveSchedule RingReduceScatter(uint32_t rank, uint32_t world);
// Rank r begins with part r.
CollectiveSchedule RingAllGather(uint32_t rank, uint32_t world);

// 2 (N - 1) (alpha + S/N beta) + (N - 1) S/N gamma. `bytes`, here and in the others: S, the whole
// buffer of one rank.
double RingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// 2 (N - 1) (2 alpha + S/N beta) + (N - 1) S/N gamma.
double BidirectionalRingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// As that of a ring of half of the bytes: with a link for each neighbour. REQUIRES: world > 2.
double BidirectionalRingAllReduceSecondsOnRing(const LinkCost& link, uint32_t world,
                                               uint64_t bytes);
// (N - 1) (alpha + S/N (beta + gamma)).
double RingReduceScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// (N - 1) (alpha + S/N beta).
double RingAllGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_RING_H_
