// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/binary_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tug {
namespace {

uint32_t Left(uint32_t rank) { return 2 * rank + 1; }
uint32_t Parent(uint32_t rank) { return (rank - 1) / 2; }
uint32_t Depth(uint32_t rank) { return static_cast<uint32_t>(std::bit_width(rank + 1)) - 1; }

uint32_t Children(uint32_t rank, uint32_t world) {
  return Left(rank) >= world ? 0 : std::min(2u, world - Left(rank));
}

// First step in which a rank has the sum of the first part over its subtree. A left subtree is at
// least as deep as the right one, so the left edge decides.
uint32_t Summed(uint32_t rank, uint32_t world) {
  uint32_t steps = 0;
  for (; Children(rank, world) > 0; rank = Left(rank)) steps += Children(rank, world);
  return steps;
}

// First step that sends the first part up to the parent, the right child's one step after the left
// child's: a step's receives are of different parts. REQUIRES: not the root.
uint32_t FirstUp(uint32_t rank, uint32_t world) {
  return rank % 2 == 1 ? Summed(rank, world) : Summed(rank - 1, world) + 1;
}

// First step that sends the first part down to the children.
uint32_t FirstDown(uint32_t rank, uint32_t world) { return Summed(0, world) + Depth(rank); }

// Number of messages on a part's longest way down from a rank.
uint32_t LongestWayDown(uint32_t rank, uint32_t world) {
  uint32_t longest = 0;
  for (uint32_t i = 0; i < Children(rank, world); ++i) {
    longest = std::max(longest, i + 1 + LongestWayDown(Left(rank) + i, world));
  }
  return longest;
}

}  // namespace

CollectiveSchedule BinaryTreeAllReduce(uint32_t rank, uint32_t world, uint32_t parts) {
  TUG_CHECK(rank < world);
  TUG_CHECK(parts >= 1);
  CollectiveSchedule schedule{.parts = parts};
  if (world == 1) return schedule;
  schedule.steps.resize(FirstDown(world - 1, world) + parts - 1);
  for (uint32_t part = 0; part < parts; ++part) {
    const auto at = [&](uint32_t first) -> Step& { return schedule.steps[first + part]; };
    for (uint32_t i = 0; i < Children(rank, world); ++i) {
      const uint32_t child = Left(rank) + i;
      at(FirstUp(child, world)).receives.push_back({child, part, part + 1, true});
      at(FirstDown(rank, world)).sends.push_back({child, part, part + 1});
    }
    if (rank == 0) continue;
    const uint32_t parent = Parent(rank);
    at(FirstUp(rank, world)).sends.push_back({parent, part, part + 1});
    at(FirstDown(parent, world)).receives.push_back({parent, part, part + 1});
  }
  return schedule;
}

double BinaryTreeAllReduceSeconds(const LinkCost& link, uint32_t world, uint32_t parts,
                                  uint64_t bytes) {
  TUG_CHECK(world > 0);
  const double part = static_cast<double>(bytes) / parts;
  const double send = SendSeconds(link, part), reduce = ReduceSeconds(link, part);
  const double first_part = Summed(0, world) * reduce + LongestWayDown(0, world) * send;
  double busiest = Children(0, world) * reduce;
  if (world > 1) busiest = std::max(busiest, Children(1, world) * reduce + send);
  return first_part + (parts - 1) * busiest;
}

}  // namespace tug
