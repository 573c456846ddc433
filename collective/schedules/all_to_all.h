// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_ALL_TO_ALL_H_
#define TUG_COLLECTIVE_SCHEDULES_ALL_TO_ALL_H_

// All-to-all in place by pairwise exchange (Thakur, Rabenseifner and Gropp 2005): part p of rank
// r's buffer holds r's data for p, and ends with p's data for r (CollectiveSchedule::transposes).
// In each round ranks are paired as in a round-robin tournament (circle method), and a pair swaps
// its two parts.
//
// N - 1 rounds for even N; N for odd N: a round has at most (N - 1) / 2 of the N (N - 1) / 2 pairs,
// since one rank is idle, and each pair meets once. A rank sends (N - 1) / N S bytes, none of them
// twice. Every receive has a write hazard (write_hazards.h): what arrives replaces what is sent.

#include <cstdint>

#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"

namespace tug {

CollectiveSchedule PairwiseAllToAll(uint32_t rank, uint32_t world);

// N - 1 (even N) or N (odd N) rounds of alpha + S/N beta.
double PairwiseAllToAllSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_ALL_TO_ALL_H_
