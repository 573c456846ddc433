// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_BARRIER_H_
#define TUG_COLLECTIVE_SCHEDULES_BARRIER_H_

// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k rank r sends to r + 2^k and
// receives from r - 2^k (mod N). No rank finishes before all have started. Messages have no parts.
//
// ceil(log2 N) rounds.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

CollectiveSchedule DisseminationBarrier(uint32_t rank, uint32_t world);

// ceil(log2 N) alpha.
double DisseminationBarrierSeconds(const LinkCost& link, uint32_t world);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_BARRIER_H_
