// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/ring.h"

#include "base/check.h"
#include "collective/schedules/ring_phases.h"

namespace tug {
namespace {

Ring OfAll(uint32_t rank, uint32_t world) { return {.count = world, .position = rank}; }

}  // namespace

CollectiveSchedule RingAllReduce(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  CollectiveSchedule schedule{.parts = world};
  AppendRingReduceScatter(OfAll(rank, world), schedule.steps);
  AppendRingAllGather(OfAll(rank, world), schedule.steps);
  return schedule;
}

CollectiveSchedule RingReduceScatter(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  CollectiveSchedule schedule{.parts = world};
  AppendRingReduceScatter(OfAll(rank, world), schedule.steps);
  return schedule;
}

CollectiveSchedule RingAllGather(uint32_t rank, uint32_t world) {
  TUG_CHECK(rank < world);
  CollectiveSchedule schedule{.parts = world};
  AppendRingAllGather(OfAll(rank, world), schedule.steps);
  return schedule;
}

double RingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return RingPhasesSeconds(link, world, static_cast<double>(bytes) / world);
}

double RingReduceScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return (world - 1) * ReduceSeconds(link, static_cast<double>(bytes) / world);
}

double RingAllGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  TUG_CHECK(world > 0);
  return (world - 1) * SendSeconds(link, static_cast<double>(bytes) / world);
}

}  // namespace tug
