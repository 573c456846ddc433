#include "collective/ring.h"

#include "collective/ring_phases.h"

namespace tug {
namespace {

Ring OfAll(uint32_t rank, uint32_t world) { return {.count = world, .position = rank}; }

}  // namespace

Schedule RingAllReduce(uint32_t rank, uint32_t world) {
  Schedule schedule{.parts = world};
  AppendRingReduceScatter(OfAll(rank, world), schedule.steps);
  AppendRingAllGather(OfAll(rank, world), schedule.steps);
  return schedule;
}

Schedule RingReduceScatter(uint32_t rank, uint32_t world) {
  Schedule schedule{.parts = world};
  AppendRingReduceScatter(OfAll(rank, world), schedule.steps);
  return schedule;
}

Schedule RingAllGather(uint32_t rank, uint32_t world) {
  Schedule schedule{.parts = world};
  AppendRingAllGather(OfAll(rank, world), schedule.steps);
  return schedule;
}

double RingAllReduceSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  return RingPhasesSeconds(link, world, static_cast<double>(bytes) / world);
}

double RingReduceScatterSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  return (world - 1) * ReduceSeconds(link, static_cast<double>(bytes) / world);
}

double RingAllGatherSeconds(const LinkCost& link, uint32_t world, uint64_t bytes) {
  return (world - 1) * SendSeconds(link, static_cast<double>(bytes) / world);
}

}  // namespace tug
