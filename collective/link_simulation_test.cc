// SPDX-License-Identifier: Apache-2.0
#include "collective/link_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collective/algorithms.h"
#include "collective/network/topology.h"
#include "collective/schedules/binomial_tree.h"
#include "collective/schedules/grid.h"
#include "collective/schedules/mesh_2d.h"
#include "collective/schedules/ring.h"

namespace tug {
namespace {

// 50 us per message, 1 Gbit/s, 4 GB/s summed; within a host 5 us and 5 GB/s.
constexpr LinkCost kLink{50e-6, 8e-9, 0.25e-9};
constexpr LinkCost kWithin{5e-6, 0.2e-9, 0.25e-9};
constexpr uint32_t kLargestWorld = 33;
constexpr uint32_t kRanksPerHost = 3;

// Buffer size for which the parts of all algorithms are equal, as formulas assume.
uint64_t EvenBytes(uint32_t world) {
  const uint32_t hosts = (world + kRanksPerHost - 1) / kRanksPerHost;
  return uint64_t{32} * 100 * world * hosts;
}

double Simulated(const char* name, uint32_t world, const Topology& topology, uint64_t bytes,
                 const AllReduceSettings& settings = {}) {
  return SimulatedSeconds(AllReduceFamily(*FindAllReduce(name), world, settings), topology, bytes);
}

template <class ScheduleOf>
double SimulatedOnSwitch(const ScheduleOf& schedule, uint32_t world, uint64_t bytes) {
  std::vector<CollectiveSchedule> family;
  for (uint32_t rank = 0; rank < world; ++rank) family.push_back(schedule(rank, world));
  return SimulatedSeconds(family, Topology::Switch(world, kLink), bytes);
}

Topology OneRing(uint32_t world) {
  const std::array<uint32_t, 1> sides{world};
  return Topology::Torus(sides, kLink);
}

void ExpectEqualSeconds(double simulated, double formula, const std::string& what) {
  EXPECT_NEAR(simulated, formula, 1e-9 * formula) << what;
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaOnASwitchForAnyWorld) {
  for (const char* name : {"ring", "bidirectional_ring", "halving_doubling", "recursive_doubling",
                           "torus_2d", "torus_3d", "binary_tree", "mesh_2d"}) {
    for (uint32_t world = 1; world <= kLargestWorld; ++world) {
      const uint64_t bytes = EvenBytes(world);
      ExpectEqualSeconds(Simulated(name, world, Topology::Switch(world, kLink), bytes),
                         FindAllReduce(name)->seconds(kLink, world, bytes, {}),
                         std::string(name) + " of " + std::to_string(world));
    }
  }
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaForHostsOfSeveralRanks) {
  const AllReduceSettings settings{.ranks_per_host = kRanksPerHost, .within_host = kWithin};
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    const uint64_t bytes = EvenBytes(world);
    const Topology hosts = Topology::Hosts(world, kRanksPerHost, kLink, kWithin);
    ExpectEqualSeconds(Simulated("hierarchical", world, hosts, bytes, settings),
                       FindAllReduce("hierarchical")->seconds(kLink, world, bytes, settings),
                       std::to_string(world));
  }
}

TEST(LinkSimulation, TakesTheTimeOfTheFormulaForOtherCollectives) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    const uint64_t bytes = EvenBytes(world);
    const std::string what = std::to_string(world);
    const auto rooted = [](CollectiveSchedule (*schedule)(uint32_t, uint32_t, uint32_t)) {
      return [schedule](uint32_t rank, uint32_t size) { return schedule(rank, size, 0); };
    };
    ExpectEqualSeconds(SimulatedOnSwitch(RingReduceScatter, world, bytes),
                       RingReduceScatterSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(RingAllGather, world, bytes),
                       RingAllGatherSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(rooted(BinomialBroadcast), world, bytes),
                       BinomialBroadcastSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(rooted(BinomialReduce), world, bytes),
                       BinomialReduceSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(rooted(BinomialScatter), world, bytes),
                       BinomialScatterSeconds(kLink, world, bytes), what);
    ExpectEqualSeconds(SimulatedOnSwitch(rooted(BinomialGather), world, bytes),
                       BinomialGatherSeconds(kLink, world, bytes), what);
  }
}

// The formula assumes that the busiest port is always busy, and that every part's way is as long as
// the first one's. In fact a port may wait for the port at the other end, and a part may overtake
// where the formula makes it wait.
TEST(LinkSimulation, OfPipelinedPartsOnASwitchIsNearTheFormula) {
  const LinkCost links[] = {kLink,     kWithin,   {1e-6, 1e-9, 0}, {1e-6, 0.1e-9, 1e-9},
                            {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (const LinkCost& link : links) {
    for (const char* name : {"binary_tree", "mesh_2d"}) {
      for (uint32_t world = 2; world <= kLargestWorld; ++world) {
        for (uint32_t parts : {2, 4, 8, 32, 128}) {
          const uint64_t bytes = uint64_t{1} << 20;
          const double formula = FindAllReduce(name)->seconds(link, world, bytes, {.parts = parts});
          const double ratio =
              Simulated(name, world, Topology::Switch(world, link), bytes, {.parts = parts}) /
              formula;
          EXPECT_GT(ratio, 0.8) << name << " of " << world << " in " << parts;
          EXPECT_LT(ratio, 1.35) << name << " of " << world << " in " << parts;
        }
      }
    }
  }
}

TEST(LinkSimulation, OfTorusAndMeshOnTheirOwnLinksTakesTheTimeOfTheFormula) {
  for (uint32_t world = 1; world <= kLargestWorld; ++world) {
    const uint64_t bytes = EvenBytes(world);
    const std::string what = std::to_string(world);
    ExpectEqualSeconds(Simulated("ring", world, OneRing(world), bytes),
                       RingAllReduceSeconds(kLink, world, bytes), "ring " + what);
    if (world > 2) {
      ExpectEqualSeconds(Simulated("bidirectional_ring", world, OneRing(world), bytes),
                         BidirectionalRingAllReduceSecondsOnRing(kLink, world, bytes),
                         "bidirectional ring " + what);
    }
    for (const auto& [name, topology] :
         {std::pair{"torus_2d", Topology::Torus(MostSquare(world).sides(), kLink)},
          std::pair{"torus_3d", Topology::Torus(MostCubic(world).sides(), kLink)}}) {
      ExpectEqualSeconds(Simulated(name, world, topology, bytes),
                         FindAllReduce(name)->seconds(kLink, world, bytes, {}), name + what);
    }
    for (uint32_t parts : {1, 4, 32}) {
      ExpectEqualSeconds(
          Simulated("mesh_2d", world, Topology::Mesh(MostSquare(world).sides(), kLink), bytes,
                    {.parts = parts}),
          Mesh2dAllReduceSecondsOnMesh(kLink, world, parts, bytes), "mesh " + what);
    }
  }
}

// 64 ranks: a ring; 8 x 8 with and without the links that close its lines; 4 x 4 x 4. The order
// holds for these schedules, not for the networks: a torus that used all links at once would send
// fewer bytes over each than the mesh (torus.h).
TEST(LinkSimulation, GivesMoreDimensionsFewerMessagesAndBothDirectionsFewerBytesALink) {
  const uint32_t world = 64;
  const Topology ring = OneRing(world),
                 torus_2d = Topology::Torus(MostSquare(world).sides(), kLink),
                 mesh = Topology::Mesh(MostSquare(world).sides(), kLink),
                 torus_3d = Topology::Torus(MostCubic(world).sides(), kLink);
  EXPECT_EQ(ring.links(), 64u);
  EXPECT_EQ(torus_2d.links(), 128u);
  EXPECT_EQ(mesh.links(), 112u);
  EXPECT_EQ(torus_3d.links(), 192u);
  const AllReduceSettings one_part{.parts = 1}, parts{.parts = 256};
  const uint64_t small = 4096, large = uint64_t{64} << 20;

  const double of_3d = Simulated("torus_3d", world, torus_3d, small);
  const double of_2d = Simulated("torus_2d", world, torus_2d, small);
  EXPECT_LT(of_3d, of_2d);
  EXPECT_LT(of_2d, Simulated("mesh_2d", world, mesh, small, one_part));
  EXPECT_LT(of_2d, Simulated("ring", world, ring, small));

  const double both_ways = Simulated("bidirectional_ring", world, ring, large);
  EXPECT_LT(both_ways, Simulated("mesh_2d", world, mesh, large, parts));
  EXPECT_LT(both_ways, Simulated("torus_3d", world, torus_3d, large));
}

}  // namespace
}  // namespace tug
