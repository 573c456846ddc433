// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/barrier.h"

#include <bit>

#include "base/check.h"

namespace tug {

CollectiveSchedule DisseminationBarrier(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  CollectiveSchedule schedule;
  for (uint32_t distance = 1; distance < world; distance *= 2) {
    schedule.steps.push_back(
        {{{.peer = (rank + distance) % world}}, {{.peer = (rank + world - distance) % world}}});
  }
  return schedule;
}

double DisseminationBarrierSeconds(const LinkCost& link, uint32_t world) {
  TUG_CHECK(world > 0);
  return std::bit_width(world - 1) * link.alpha;
}

}  // namespace tug
