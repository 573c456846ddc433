#ifndef TUG_COLLECTIVE_BARRIER_H_
#define TUG_COLLECTIVE_BARRIER_H_

// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k rank r tells r + 2^k and
// hears from r - 2^k (mod N). Nobody is done before everybody has begun. Messages have no parts.
//
// ceil(log2 N) rounds.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

CollectiveSchedule DisseminationBarrier(uint32_t rank, uint32_t world);

// ceil(log2 N) alpha.
double DisseminationBarrierSeconds(const LinkCost& link, uint32_t world);

}  // namespace tug

#endif  // TUG_COLLECTIVE_BARRIER_H_
