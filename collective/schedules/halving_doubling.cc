// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/halving_doubling.h"

#include <bit>
#include <vector>

#include "base/check.h"
#include "collective/schedules/fold.h"

namespace tug {
namespace {

// Parts that a member and its peer split in one round of halving, and exchange again in the
// matching round of doubling.
struct Exchange {
  Transfer kept;   // parts this rank keeps
  Transfer given;  // parts the peer keeps
};

std::vector<Exchange> Exchanges(const Fold& fold, uint32_t member) {
  std::vector<Exchange> exchanges;
  uint32_t begin = 0, end = fold.members();
  for (uint32_t distance = 1; distance < fold.members(); distance *= 2) {
    const uint32_t peer = fold.RankOf(member ^ distance);
    const uint32_t middle = (begin + end) / 2;
    const Transfer lower{peer, begin, middle}, upper{peer, middle, end};
    const bool keeps_lower = (member & distance) == 0;
    exchanges.push_back({keeps_lower ? lower : upper, keeps_lower ? upper : lower});
    begin = exchanges.back().kept.begin;
    end = exchanges.back().kept.end;
  }
  return exchanges;
}

}  // namespace

CollectiveSchedule HalvingDoublingAllReduce(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  const Fold fold(world);
  CollectiveSchedule schedule{.parts = fold.members(), .takes_turns = true};
  std::vector<Step>& steps = schedule.steps;
  fold.AppendIn(rank, schedule.parts, steps);
  if (const auto member = fold.MemberOf(rank)) {
    const std::vector<Exchange> exchanges = Exchanges(fold, *member);
    for (const Exchange& exchange : exchanges) {
      Transfer summed = exchange.kept;
      summed.reduces = true;
      steps.push_back({{exchange.given}, {summed}});
    }
    for (auto it = exchanges.rbegin(); it != exchanges.rend(); ++it) {
      steps.push_back({{it->kept}, {it->given}});
    }
  } else {
    steps.resize(steps.size() + 2 * (std::bit_width(fold.members()) - 1));
  }
  fold.AppendOut(rank, schedule.parts, steps);
  return schedule;
}

double HalvingDoublingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  const double all = static_cast<double>(bytes);
  double seconds = 0;
  for (uint32_t shared = std::bit_floor(world); shared > 1; shared /= 2) {
    const double half = all / shared;  // from S / P to S / 2
    seconds += ReduceSeconds(link, half) + SendSeconds(link, half);
  }
  if (std::has_single_bit(world)) return seconds;
  return seconds + ReduceSeconds(link, all) + SendSeconds(link, all);
}

}  // namespace tug
