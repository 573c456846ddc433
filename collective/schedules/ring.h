// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_RING_H_
#define TUG_COLLECTIVE_SCHEDULES_RING_H_

// Ring (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations"): rank r sends to r + 1 and receives from r - 1. N parts for N ranks.
//   1. Reduce-scatter: a part travels once around, is summed on the way, and ends on its own rank.
//   2. All-gather: the sum travels around once more, unchanged.
//
// All-reduce: 2 (N - 1) rounds; each rank sends 2 (N - 1) / N S bytes, and no algorithm sends
// fewer. Best for large buffers. Each half is a collective by itself, with half of the rounds and
// bytes.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

// Pure, as all schedules. REQUIRES, here and below: rank < world.
CollectiveSchedule RingAllReduce(uint32_t rank, uint32_t world);
// Rank r ends with the sum of part r.
CollectiveSchedule RingReduceScatter(uint32_t rank, uint32_t world);
// Rank r begins with part r.
CollectiveSchedule RingAllGather(uint32_t rank, uint32_t world);

// 2 (N - 1) (alpha + S/N beta) + (N - 1) S/N gamma. `bytes`, here and below: S, the whole buffer of
// one rank.
double RingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// (N - 1) (alpha + S/N (beta + gamma)).
double RingReduceScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);
// (N - 1) (alpha + S/N beta).
double RingAllGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_RING_H_
