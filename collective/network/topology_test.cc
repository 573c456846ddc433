// SPDX-License-Identifier: Apache-2.0
#include "collective/network/topology.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace tug {
namespace {

constexpr LinkCost kLink{50e-6, 8e-9, 0.25e-9};
constexpr LinkCost kWithin{5e-6, 0.2e-9, 0.25e-9};

TEST(Topology, HasALinkForEachNeighbourOnly) {
  const std::array<uint32_t, 2> three_by_two{3, 2}, two_by_two{2, 2};
  const Topology mesh = Topology::Mesh(three_by_two, kLink);  // 0 1 2 / 3 4 5
  EXPECT_TRUE(mesh.Between(0, 1));
  EXPECT_TRUE(mesh.Between(3, 0));
  EXPECT_FALSE(mesh.Between(0, 2));
  EXPECT_FALSE(mesh.Between(0, 4));
  EXPECT_TRUE(Topology::Torus(three_by_two, kLink).Between(0, 2));
  EXPECT_EQ(Topology::Torus(two_by_two, kLink).links(), 4u);  // no second link between two ranks
}

TEST(Topology, GivesTheRanksOfAHostOnePortToOthers) {
  const Topology hosts = Topology::Hosts(5, 2, kLink, kWithin);  // 0 1 / 2 3 / 4
  EXPECT_EQ(hosts.Between(0, 2)->out, hosts.Between(1, 4)->out);
  EXPECT_EQ(hosts.Between(0, 2)->in, hosts.Between(4, 3)->in);
  EXPECT_NE(hosts.Between(0, 2)->out, hosts.Between(0, 1)->out);
  EXPECT_EQ(hosts.Between(0, 2)->link, kLink);
  EXPECT_EQ(hosts.Between(2, 3)->link, kWithin);
}

TEST(Topology, OfASwitchGivesEachRankAPortOfItsOwn) {
  const Topology all = Topology::Switch(3, kLink);
  EXPECT_EQ(all.Between(0, 1)->out, all.Between(0, 2)->out);
  EXPECT_NE(all.Between(0, 1)->out, all.Between(1, 0)->out);
  EXPECT_NE(all.Between(0, 1)->in, all.Between(1, 0)->out);
}

}  // namespace
}  // namespace tug
