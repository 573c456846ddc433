// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/node_names.h"

#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "proto/control.pb.h"
#include "proto/process_name.h"

namespace tug {
namespace {

class NodeNamesTest : public testing::Test {
 protected:
  // Index and life.
  std::pair<uint32_t, uint32_t> Give(NodeKind kind, std::optional<uint32_t> wish = std::nullopt) {
    const NodeName name = names_.Give(kind, wish);
    return {name.index, name.life};
  }

  NodeNames names_;
};

TEST_F(NodeNamesTest, CountsEachKindInOrderOfArrival) {
  EXPECT_EQ(Give(SERVER), std::pair(0u, 1u));
  EXPECT_EQ(Give(WORKER), std::pair(0u, 1u));
  EXPECT_EQ(Give(WORKER), std::pair(1u, 1u));
  EXPECT_EQ(Give(SERVER), std::pair(1u, 1u));
}

TEST_F(NodeNamesTest, GrantsWishesInAnyOrder) {
  EXPECT_EQ(Give(WORKER, 2), std::pair(2u, 1u));
  EXPECT_EQ(Give(WORKER, 0), std::pair(0u, 1u));
  EXPECT_EQ(Give(WORKER), std::pair(1u, 1u)) << "the lowest free one";
  EXPECT_EQ(Give(WORKER), std::pair(3u, 1u));
}

TEST_F(NodeNamesTest, AReplacementIsTheSecondLifeOfAName) {
  Give(WORKER, 0);
  Give(WORKER, 1);
  names_.Release(WORKER, 1);
  EXPECT_EQ(Give(WORKER, 1), std::pair(1u, 2u));
  names_.Release(WORKER, 0);
  EXPECT_EQ(Give(WORKER), std::pair(0u, 2u)) << "also without a wish";
  names_.Release(WORKER, 0);
  EXPECT_EQ(Give(WORKER, 0), std::pair(0u, 3u));
}

TEST_F(NodeNamesTest, AHeldNameIsGivenToNobodyElse) {
  Give(SERVER, 1);
  EXPECT_EQ(Give(SERVER, 1), std::pair(0u, 1u));
  EXPECT_EQ(Give(SERVER, 1), std::pair(2u, 1u));
}

TEST_F(NodeNamesTest, IgnoresAWishBeyondTheLimit) {
  EXPECT_EQ(Give(WORKER, kProcessIndexLimit), std::pair(0u, 1u));
  EXPECT_EQ(Give(WORKER, ~0u), std::pair(1u, 1u));
  EXPECT_EQ(Give(WORKER, kProcessIndexLimit - 1), std::pair(kProcessIndexLimit - 1, 1u));
}

TEST_F(NodeNamesTest, NoTwoNodesHoldOneNameUnderAnyArrivalsAndLosses) {
  std::mt19937 random(7);
  std::set<uint32_t> held;
  std::vector<uint32_t> lives(64, 0);
  for (int round = 0; round < 10'000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      const auto lost = std::next(held.begin(), static_cast<int>(random() % held.size()));
      names_.Release(WORKER, *lost);
      held.erase(lost);
      continue;
    }
    if (held.size() == 32) continue;
    std::optional<uint32_t> wish;
    if (random() % 3 != 0) wish = random() % 32;
    const auto [index, life] = Give(WORKER, wish);
    ASSERT_TRUE(held.insert(index).second) << "round " << round;
    ASSERT_EQ(life, ++lives[index]);
    if (wish.has_value() && held.count(*wish) == 0) FAIL() << "a free wish was not granted";
  }
}

}  // namespace
}  // namespace tug
