// SPDX-License-Identifier: Apache-2.0
#include "collective/network/link_simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

// 50 us per message, 1 Gbit/s, 4 GB/s summed; within a host 5 us and 5 GB/s.
constexpr LinkCost kLink{50e-6, 8e-9, 0.25e-9};
constexpr LinkCost kWithin{5e-6, 0.2e-9, 0.25e-9};
constexpr uint32_t kLargestWorld = 33;
constexpr uint32_t kRanksPerHost = 3;
constexpr HostLinks kHosts{kLink, kRanksPerHost, kWithin};

// Buffer size for which the parts of all algorithms are equal, as formulas assume.
uint64_t EvenBytes(uint32_t world) {
  const uint32_t hosts = (world + kRanksPerHost - 1) / kRanksPerHost;
  return uint64_t{32} * 100 * world * hosts;
}

double Simulated(const char* name, uint32_t world, const HostLinks& links, uint64_t bytes,
                 const AllReduceSettings& settings = {}) {
  return SimulatedSeconds(AllReduceFamily(*FindAllReduce(name), world, settings), links, bytes);
}

template <class ScheduleOf>
double SimulatedOnSwitch(const ScheduleOf& schedule, uint32_t world, uint64_t bytes) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) family.push_back(schedule(rank, world));
  return SimulatedSeconds(family, {.between_hosts = kLink}, bytes);
}

void ExpectEqualSeconds(double simulated, double formula, const std::string& what) {
  EXPECT_NEAR(simulated, formula, 1e-9 * formula) << what;
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaOnASwitchForAnyWorld) {
  for (const char* name :
       {"ring", "halving_doubling", "recursive_doubling", "torus_2d", "torus_3d", "binary_tree"}) {
    for (uint32_t world = 1; world <= kLargestWorld; ++world) {
      const uint64_t bytes = EvenBytes(world);
      ExpectEqualSeconds(Simulated(name, world, {.between_hosts = kLink}, bytes),
                         FindAllReduce(name)->seconds(kLink, world, bytes, {}),
                         std::string(name) + " of " + std::to_string(world));
    }
  }
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaForHostsOfSeveralRanks) {
  const AllReduceSettings settings{.ranks_per_host = kRanksPerHost, .within_host = kWithin};
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    const uint64_t bytes = EvenBytes(world);
    ExpectEqualSeconds(Simulated("hierarchical", world, kHosts, bytes, settings),
                       FindAllReduce("hierarchical")->seconds(kLink, world, bytes, settings),
                       std::to_string(world));
  }
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaForReduceScatterAndAllGather) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    const uint64_t bytes = EvenBytes(world);
    const std::string what = std::to_string(world);
    ExpectEqualSeconds(SimulatedOnSwitch(RingReduceScatter, world, bytes),
                       RingReduceScatterSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(RingAllGather, world, bytes),
                       RingAllGatherSeconds(kLink, world, bytes), what);
  }
}

// The formula assumes that the busiest port is always busy, and that every part's way is as long as
// the first one's. In fact a port may wait for the port at the other end, and a part may overtake
// where the formula makes it wait.
TEST(LinkSimulation, PipelinedPartsOnSwitchTakeAboutFormulaTime) {
  const LinkCost links[] = {kLink,     kWithin,   {1e-6, 1e-9, 0}, {1e-6, 0.1e-9, 1e-9},
                            {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (const LinkCost& link : links) {
    for (uint32_t world = 2; world <= kLargestWorld; ++world) {
      for (uint32_t parts : {2, 4, 8, 32, 128}) {
        const uint64_t bytes = uint64_t{1} << 20;
        const AllReduceSettings settings{.parts = parts};
        const double ratio =
            Simulated("binary_tree", world, {.between_hosts = link}, bytes, settings) /
            FindAllReduce("binary_tree")->seconds(link, world, bytes, settings);
        EXPECT_GT(ratio, 0.8) << world << " in " << parts;
        EXPECT_LT(ratio, 1.35) << world << " in " << parts;
      }
    }
  }
}

// Ranks 0 to 2 are on one host, 3 to 5 on the other.
TEST(LinkSimulation, LetsTheRanksOfAHostShareItsPortToOthers) {
  constexpr uint64_t kBytes = 1 << 20;
  const auto to_other_host = [](uint32_t senders) {
    std::vector<CollectiveSchedule> family(6);
    for (CollectiveSchedule& schedule : family) schedule.steps.resize(1);
    for (uint32_t rank = 0; rank < senders; ++rank) {
      family[rank].steps[0].sends = {{.peer = rank + 3, .end = 1}};
      family[rank + 3].steps[0].receives = {{.peer = rank, .end = 1}};
    }
    return SimulatedSeconds(family, kHosts, kBytes);
  };
  const double one = SendSeconds(kLink, kBytes);
  ExpectEqualSeconds(to_other_host(1), one, "one");
  ExpectEqualSeconds(to_other_host(3), 3 * one, "three");
}

}  // namespace
}  // namespace tug
