// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/recursive_doubling.h"

#include <bit>

#include "base/check.h"
#include "collective/schedules/fold.h"

namespace tug {

CollectiveSchedule RecursiveDoublingAllReduce(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  const Fold fold(world);
  CollectiveSchedule schedule{.takes_turns = true};
  fold.AppendIn(rank, 1, schedule.steps);
  const auto member = fold.MemberOf(rank);
  for (uint32_t distance = 1; distance < fold.members(); distance *= 2) {
    Step& step = schedule.steps.emplace_back();
    if (!member) continue;
    const uint32_t peer = fold.RankOf(*member ^ distance);
    step.sends.push_back({peer, 0, 1});
    step.receives.push_back({peer, 0, 1, true});
  }
  fold.AppendOut(rank, 1, schedule.steps);
  return schedule;
}

double RecursiveDoublingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  const double exchange = ReduceSeconds(link, static_cast<double>(bytes));
  const double butterfly = (std::bit_width(world) - 1) * exchange;
  if (std::has_single_bit(world)) return butterfly;
  return butterfly + exchange + SendSeconds(link, static_cast<double>(bytes));
}

}  // namespace tug
