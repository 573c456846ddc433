// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard_activity.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using Doing = ShardActivity::Doing;
using ShardActivityTest = ShardTest;

TEST_F(ShardActivityTest, RestsWhileNobodyHasPushed) {
  EXPECT_EQ(shard_.activity(), ShardActivity());
}

TEST_F(ShardActivityTest, WaitsForWhoHasNotPushedTheBlockThatIsPushedFirst) {
  Push(0, 0, 0);
  EXPECT_EQ(shard_.activity().block, 0u);
  Push(1, 0, 0);
  EXPECT_EQ(shard_.activity().doing, Doing::kWaiting);
  EXPECT_EQ(shard_.activity().block, 1u) << "of the same clock, the last block comes first";
  EXPECT_EQ(shard_.activity().clock, 0u);
  EXPECT_THAT(shard_.activity().late, ElementsAre(1));
  Push(1, 1, 0);
  EXPECT_EQ(shard_.activity().block, 0u);
  EXPECT_THAT(shard_.activity().late, ElementsAre(1));
  Push(0, 1, 0);
  EXPECT_EQ(shard_.activity(), ShardActivity());
}

TEST_F(ShardActivityTest, TheOldestClockIsWhatItWaitsFor) {
  Push(1, 0, 0);
  Push(1, 1, 0);
  Push(1, 1, 1);  // next clock
  Push(0, 1, 0);
  EXPECT_EQ(shard_.activity().block, 0u);
  EXPECT_EQ(shard_.activity().clock, 0u);
  EXPECT_THAT(shard_.activity().late, ElementsAre(0));
}

class ClippingShardActivityTest : public ShardTest {
 protected:
  ClippingShardActivityTest() : ShardTest(OptimizerConfig::GLOBAL) {}
};

TEST_F(ClippingShardActivityTest, ACompleteSumThatWaitsForNormsIsAnUpdate) {
  for (const uint32_t block : {1u, 0u}) {
    Push(block, 0, 0);
    Push(block, 1, 0);
  }
  EXPECT_EQ(shard_.activity().doing, Doing::kUpdating);
  EXPECT_THAT(shard_.activity().late, ElementsAre());
}

using SspShardActivityTest = UpdateShardTest;

TEST_F(SspShardActivityTest, WaitsForTheSlowestWhomAPullWaitsFor) {
  for (const uint64_t clock : {0u, 1u}) Push(1, 0, clock);
  EXPECT_EQ(shard_.activity(), ShardActivity()) << "nobody waits";
  WireHeader pull = Header(MessageKind::kPull, 1);
  pull.clock = 2;
  pull.virtual_worker_count = 1;
  pull.want = Want::kAtLeast;
  Deliver(pull);
  EXPECT_EQ(shard_.activity().doing, Doing::kWaiting);
  EXPECT_EQ(shard_.activity().block, 1u);
  EXPECT_EQ(shard_.activity().clock, 0u);
  EXPECT_THAT(shard_.activity().late, ElementsAre(1));
  Push(1, 1, 0);
  EXPECT_EQ(shard_.activity(), ShardActivity());
}

TEST_F(SspShardActivityTest, NamesTheBlockOfThePullWithTheLowestClock) {
  for (const uint32_t block : {0u, 1u}) {
    for (const uint64_t clock : {0u, 1u, 2u}) Push(block, 0, clock);
  }
  for (const auto& [block, clock] : std::vector<std::pair<uint32_t, uint64_t>>{{1, 3}, {0, 2}}) {
    WireHeader pull = Header(MessageKind::kPull, block);
    pull.clock = clock;
    pull.virtual_worker_count = 1;
    pull.want = Want::kAtLeast;
    Deliver(pull);
  }
  EXPECT_EQ(shard_.activity().doing, Doing::kWaiting);
  EXPECT_EQ(shard_.activity().block, 0u);
}

}  // namespace
}  // namespace tug
