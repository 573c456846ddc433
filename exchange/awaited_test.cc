// SPDX-License-Identifier: Apache-2.0
#include "exchange/awaited.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

using AwaitedTest = ExchangeTest;

TEST_F(AwaitedTest, UnrequestedBlockAwaitsNothing) {
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kNothing);
}

// The credit covers four partitions; a block has three.
TEST_F(AwaitedTest, FollowsAPushFromTheQueueOverTheWireToTheSum) {
  Push(2);
  Push(1);
  exchange_.Pull({1, Want::kExact, 1, destination_}, now_);
  const std::vector<Outgoing> sent = std::exchange(sent_, {});
  EXPECT_EQ(exchange_.AwaitedOf(2), Awaited::kWire);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kQueue) << "two partitions have no credit";
  for (int i = 0; i < 3; ++i) Answer(sent[i], MessageKind::kReceived);
  EXPECT_EQ(exchange_.AwaitedOf(2), Awaited::kSum);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kWire);
  std::vector<Outgoing> pushes = {sent[3]};
  for (const Outgoing& late : std::exchange(sent_, {})) pushes.push_back(late);
  ASSERT_EQ(pushes.size(), 3u);
  Answer(pushes[0], MessageKind::kReceived);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kWire) << "two of it are on their way";
  for (int i = 1; i < 3; ++i) Answer(pushes[i], MessageKind::kReceived);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kSum);
  for (const Outgoing& push : pushes) Answer(push, MessageKind::kCommitted);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kWire) << "its weights are under way";
}

TEST_F(AwaitedTest, APushThatALaneHasNoRoomForHasYetToLeave) {
  Push(1);
  Answer(sent_[0], MessageKind::kDeferred);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kQueue);
}

class UpdatesAwaitedTest : public ExchangeTest {
 protected:
  UpdatesAwaitedTest() : ExchangeTest(SyncConfig::ASP) {}
};

TEST_F(UpdatesAwaitedTest, UnansweredPullWaitsForOtherWorkers) {
  exchange_.Pull({1, Want::kAtLeast, 1, destination_, false, {}, {}, {5, 1}}, now_);
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kSum);
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment));
  EXPECT_EQ(exchange_.AwaitedOf(1), Awaited::kWire);
}

}  // namespace
}  // namespace tug
