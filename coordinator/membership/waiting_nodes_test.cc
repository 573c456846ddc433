// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/waiting_nodes.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(15);
constexpr absl::Duration kMoment = absl::Milliseconds(1);

TEST(WaitingNodes, EachMayAskForItsPatienceFromTheFirstTime) {
  WaitingNodes nodes(kPatience);
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_TRUE(nodes.MayAskAgain(1, begin));
  EXPECT_TRUE(nodes.MayAskAgain(2, begin + absl::Seconds(5)));
  EXPECT_TRUE(nodes.MayAskAgain(1, begin + kPatience - kMoment));
  EXPECT_FALSE(nodes.MayAskAgain(1, begin + kPatience));
  EXPECT_TRUE(nodes.MayAskAgain(2, begin + kPatience));
  EXPECT_FALSE(nodes.MayAskAgain(2, begin + absl::Seconds(5) + kPatience));
}

TEST(WaitingNodes, RemovedNodeStartsOverWhenItAsksAgain) {
  WaitingNodes nodes(kPatience);
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_TRUE(nodes.MayAskAgain(1, begin));
  nodes.Remove(1);
  nodes.Remove(7);
  EXPECT_FALSE(nodes.SomebodyAsks(begin));
  EXPECT_TRUE(nodes.MayAskAgain(1, begin + kPatience));
}

TEST(WaitingNodes, KnowsWhetherSomebodyStillAsks) {
  WaitingNodes nodes(kPatience);
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_FALSE(nodes.SomebodyAsks(begin));
  nodes.MayAskAgain(1, begin);
  nodes.MayAskAgain(2, begin);
  nodes.MayAskAgain(1, begin + absl::Seconds(1));
  EXPECT_TRUE(nodes.SomebodyAsks(begin + absl::Seconds(1) + WaitingNodes::kAsksWithin));
  EXPECT_FALSE(nodes.SomebodyAsks(begin + absl::Seconds(1) + WaitingNodes::kAsksWithin + kMoment));
}

TEST(WaitingNodes, TakesNoMoreThanItHoldsUntilSomeAreGone) {
  WaitingNodes nodes(kPatience);
  const absl::Time begin = absl::UnixEpoch();
  for (uint64_t node = 0; node < WaitingNodes::kMost; ++node) {
    EXPECT_TRUE(nodes.MayAskAgain(node, begin));
  }
  EXPECT_FALSE(nodes.MayAskAgain(WaitingNodes::kMost, begin));
  EXPECT_TRUE(nodes.MayAskAgain(3, begin + kMoment));
  EXPECT_TRUE(nodes.MayAskAgain(WaitingNodes::kMost, begin + kPatience + kMoment));
}

}  // namespace
}  // namespace tug
