#ifndef TUG_COLLECTIVE_ALL_TO_ALL_H_
#define TUG_COLLECTIVE_ALL_TO_ALL_H_

// All-to-all in place by pairwise exchange (Thakur, Rabenseifner and Gropp 2005): part p of rank
// r's buffer is what r has for p and becomes what p had for r (CollectiveSchedule::transposes). In
// each round the ranks are paired as a tournament is (the circle method), and a pair swaps its two
// parts.
//
// N - 1 rounds for even N. N for odd N: of the N (N - 1) / 2 pairs a round has (N - 1) / 2 at most,
// since one rank is left over, each in one of the rounds. A rank sends (N - 1) / N S
// bytes, and sends nothing twice. Every receive has a write hazard (write_hazards.h): what arrives
// takes the place of what is sent.

#include <cstdint>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace tug {

CollectiveSchedule PairwiseAllToAll(uint32_t rank, uint32_t world);

// N - 1 (even N) or N (odd N) rounds of alpha + S/N beta.
double PairwiseAllToAllSeconds(const LinkCost& link, uint32_t world, uint64_t bytes);

}  // namespace tug

#endif  // TUG_COLLECTIVE_ALL_TO_ALL_H_
