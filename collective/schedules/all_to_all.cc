// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/all_to_all.h"

#include "base/check.h"

namespace tug {
namespace {

// Players sit in a circle of an odd number; those whose numbers add up to the round, modulo the
// circle, meet. A player that would meet itself meets the last rank, which is outside the circle,
// if the world is even; else it is idle.
uint32_t Circle(uint32_t world) { return world % 2 == 0 ? world - 1 : world; }

uint32_t Opponent(uint32_t rank, uint32_t world, uint32_t round) {
  const uint32_t circle = Circle(world);
  if (rank == circle) {  // meets the player whose double number is the round
    return (round % 2 == 0 ? round : round + circle) / 2 % circle;
  }
  const uint32_t opponent = (round + circle - rank) % circle;
  return opponent == rank && circle < world ? circle : opponent;
}

uint32_t Rounds(uint32_t world) { return world == 1 ? 0 : Circle(world); }

}  // namespace

CollectiveSchedule PairwiseAllToAll(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  CollectiveSchedule schedule{.parts = world, .transposes = true, .takes_turns = true};
  for (uint32_t round = 0; round < Rounds(world); ++round) {
    Step& step = schedule.steps.emplace_back();
    const uint32_t peer = Opponent(rank, world, round);
    if (peer == rank) continue;
    step.sends.push_back({peer, peer, peer + 1});
    step.receives.push_back({peer, peer, peer + 1});
  }
  return schedule;
}

double PairwiseAllToAllSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return Rounds(world) * SendSeconds(link, static_cast<double>(bytes) / world);
}

}  // namespace tug
