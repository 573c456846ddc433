// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/torus.h"

#include <functional>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "collective/schedules/ring_phases.h"

namespace tug {

CollectiveSchedule TorusAllReduce(uint32_t rank, std::span<const uint32_t> sides) {
  const uint32_t world = std::accumulate(sides.begin(), sides.end(), 1u, std::multiplies());
  TUG_CHECK(rank < world);
  std::vector<Ring> rings;
  uint32_t stride = 1, first_part = 0, block_parts = world;
  for (const uint32_t side : sides) {
    const uint32_t position = rank / stride % side;
    block_parts /= side;
    rings.push_back({.first = rank - position * stride,
                     .stride = stride,
                     .count = side,
                     .position = position,
                     .first_part = first_part,
                     .block_parts = block_parts});
    first_part += position * block_parts;
    stride *= side;
  }
  CollectiveSchedule schedule{.parts = world, .takes_turns = true};
  for (const Ring& ring : rings) AppendRingReduceScatter(ring, schedule.steps);
  for (auto ring = rings.rbegin(); ring != rings.rend(); ++ring) {
    AppendRingAllGather(*ring, schedule.steps);
  }
  return schedule;
}

double TorusAllReduceSeconds(const LinkCost& link, std::span<const uint32_t> sides,
                             uint64_t bytes) {
  double block = static_cast<double>(bytes), seconds = 0;
  for (const uint32_t side : sides) {
    block /= side;
    seconds += RingPhasesSeconds(link, side, block);
  }
  return seconds;
}

}  // namespace tug
