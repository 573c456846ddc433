// SPDX-License-Identifier: Apache-2.0
#include "collective/message_plan.h"

#include <algorithm>
#include <vector>

#include "collective/schedules/binary_tree.h"
#include "collective/schedules/halving_doubling.h"
#include "collective/schedules/ring.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr uint64_t kElements = 1024;

MessagePlan PlanOf(const CollectiveSchedule& schedule, uint32_t rank, uint32_t world,
                   bool over_network, uint64_t chunk_elements) {
  const auto plan =
      PlanMessages(schedule, rank, world, kElements, {.chunk_elements = chunk_elements},
                   std::vector<bool>(world, over_network));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

// Whether the sends of `step` wait for all receives of the steps before `of`.
bool Waits(const MessagePlan& plan, uint32_t step, uint32_t of) {
  for (uint32_t receive = 0; receive < plan.receives.size(); ++receive) {
    if (plan.receives[receive].step >= of) continue;
    for (uint32_t send = 0; send < plan.sends.size(); ++send) {
      if (plan.sends[send].step != step) continue;
      const auto after = plan.sends_after[receive];
      if (std::find(after.begin(), after.end(), send) == after.end()) return false;
    }
  }
  return true;
}

// Rank 2 of 4 keeps parts 0 and 1, which complete one after the other, then sends part 0.
TEST(MessagePlan, OverANetworkAStepToAnotherRankWaitsForAllOfTheStepBefore) {
  const CollectiveSchedule schedule = HalvingDoublingAllReduce(2, 4);
  EXPECT_TRUE(Waits(PlanOf(schedule, 2, 4, true, kElements), 1, 1));
  EXPECT_FALSE(Waits(PlanOf(schedule, 2, 4, false, kElements / 4), 1, 1));
}

// Of several messages of one rank, only the last is waited for: they arrive in order.
TEST(MessagePlan, OverANetworkTheLastMessageOfARankIsWaitedFor) {
  const MessagePlan plan = PlanOf(HalvingDoublingAllReduce(2, 4), 2, 4, true, kElements / 4);
  ASSERT_EQ(plan.receives[1].step, 0u);
  ASSERT_EQ(plan.receives[2].step, 1u);
  for (const uint32_t send : plan.sends_after[1]) EXPECT_GE(plan.sends[send].step, 1u);
  EXPECT_FALSE(plan.sends_after[1].empty());
}

TEST(MessagePlan, ARingWaitsForNothingButItsParts) {
  for (const uint32_t world : {3, 5}) {
    const CollectiveSchedule schedule = RingAllReduce(1, world);
    const MessagePlan network = PlanOf(schedule, 1, world, true, 16);
    const MessagePlan memory = PlanOf(schedule, 1, world, false, 16);
    EXPECT_EQ(network.send_waits, memory.send_waits);
  }
}

TEST(MessagePlan, TwoRanksShareNoPort) {
  const CollectiveSchedule schedule = HalvingDoublingAllReduce(1, 2);
  EXPECT_EQ(PlanOf(schedule, 1, 2, true, 16).send_waits,
            PlanOf(schedule, 1, 2, false, 16).send_waits);
}

// Otherwise a leaf of the tree would send everything at once and crowd out its sibling.
TEST(MessagePlan, OverANetworkALeafIsNoMoreThanAStepAhead) {
  constexpr uint32_t kParts = 16;
  const CollectiveSchedule schedule = BinaryTreeAllReduce(2, 3, kParts);
  const MessagePlan plan = PlanOf(schedule, 2, 3, true, kElements);
  ASSERT_EQ(plan.sends.size(), kParts);
  const uint32_t first = plan.receives.front().step;
  uint32_t held = 0;
  for (uint32_t send = 0; send < kParts; ++send) {
    EXPECT_EQ(plan.send_waits[send] > 0, plan.sends[send].step > first + 1) << send;
    held += plan.send_waits[send];
  }
  EXPECT_GT(held, kParts / 2);
}

}  // namespace
}  // namespace tug
