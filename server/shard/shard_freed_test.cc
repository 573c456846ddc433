// SPDX-License-Identifier: Apache-2.0
// A lane whose workers free a gradient on kReceived.

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

class ShardFreedTest : public ShardTest {
 protected:
  explicit ShardFreedTest(OptimizerConfig::Clip clip = OptimizerConfig::OFF)
      : ShardTest(LetGo(clip)) {}

  static ShardOptions LetGo(OptimizerConfig::Clip clip) {
    ShardOptions options = Options(clip);
    options.senders_let_go = true;
    return options;
  }
  // Pushes from the sender's memory, which is overwritten once the lane answers kReceived.
  void PushAndOverwrite(uint32_t block, uint32_t virtual_worker, uint64_t clock, float value) {
    auto memory = std::make_shared<std::vector<float>>(2 * kSegment, value);
    WireHeader header = PushHeader(block, virtual_worker, clock);
    header.payload_bytes = memory->size() * sizeof(float);
    const std::weak_ptr<std::vector<float>> read = memory;
    Lease payload(memory, std::span<const float>(*memory));
    memory.reset();
    shard_.OnMessage({header, std::move(payload), Home::kSender}, now_);
    EXPECT_TRUE(read.expired()) << "it is read no more";
  }
  void Ask(uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    WireHeader header = PushHeader(block, virtual_worker, clock);
    header.kind = MessageKind::kPushAsked;
    sent_.clear();
    Deliver(header);
  }
  void ExpectAnswer(MessageKind kind) {
    ASSERT_EQ(sent_.size(), 1u);
    EXPECT_EQ(sent_[0].header.kind, kind);
    EXPECT_EQ(sent_[0].to, kWorker);
  }
  std::vector<float> Weights(uint32_t segment) {
    const std::span<const float> weights = shard_.weights(segment);
    return {weights.begin(), weights.end()};
  }
};

TEST_F(ShardFreedTest, ReadsNothingInTheSendersMemoryOnceItHasReceivedIt) {
  PushAndOverwrite(0, 0, 0, 1.0f);
  EXPECT_EQ(Count(MessageKind::kReceived), 1u);
  PushAndOverwrite(0, 1, 0, 2.0f);
  EXPECT_EQ(Count(MessageKind::kCommitted), 2u);
  const std::vector<float> weights = Weights(0);

  Push(1, 0, 0, 1.0f);  // received into the lane's memory
  Push(1, 1, 0, 2.0f);
  EXPECT_EQ(weights, Weights(3));
}

TEST_F(ShardFreedTest, AnswersWhoAsksForAPushAsIfItWereRepeated) {
  PushAndOverwrite(0, 0, 0, 1.0f);
  Ask(0, 0, 0);
  ExpectAnswer(MessageKind::kReceived);
  PushAndOverwrite(0, 1, 0, 1.0f);
  Ask(0, 0, 0);
  ExpectAnswer(MessageKind::kCommitted);
  EXPECT_EQ(shard_.counters().repeats, 2u);
}

TEST_F(ShardFreedTest, SaysThatItDoesNotKnowAPush) {
  Ask(0, 0, 0);
  ExpectAnswer(MessageKind::kDropped);
  PushAndOverwrite(0, 1, 0, 1.0f);
  Ask(0, 0, 0);
  ExpectAnswer(MessageKind::kDropped);
}

// The virtual worker has moved: its new worker gets the answer, too.
TEST_F(ShardFreedTest, TellsWhoAsksInAnotherView) {
  PushAndOverwrite(0, 0, 0, 1.0f);
  WireHeader asked = PushHeader(0, 0, 0);
  asked.kind = MessageKind::kPushAsked;
  asked.sender = WorkerPeer(8);
  Deliver(asked);
  sent_.clear();
  PushAndOverwrite(0, 1, 0, 1.0f);
  EXPECT_EQ(Count(MessageKind::kCommitted), 3u);
}

TEST_F(ShardFreedTest, DropsWhatNobodyCanAskFor) {
  Ask(0, 0, 5);
  Ask(0, 9, 0);
  Ask(7, 0, 0);
  EXPECT_EQ(shard_.counters().malformed, 3u);
  EXPECT_TRUE(sent_.empty());
}

class ShardFreedAndClippedTest : public ShardFreedTest {
 protected:
  ShardFreedAndClippedTest() : ShardFreedTest(OptimizerConfig::GLOBAL) {}
};

// The complete sum waits for the norms of the other lane.
TEST_F(ShardFreedAndClippedTest, KeepsASumThatWaitsForNormsInItsOwnMemory) {
  for (uint32_t block = 0; block < 2; ++block) {
    for (uint32_t virtual_worker = 0; virtual_worker < 2; ++virtual_worker) {
      PushAndOverwrite(block, virtual_worker, 0, 1.0f);
    }
  }
  EXPECT_EQ(Count(MessageKind::kReceived), 4u);
  EXPECT_EQ(Count(MessageKind::kCommitted), 0u);
  Ask(1, 1, 0);
  ExpectAnswer(MessageKind::kReceived);
}

}  // namespace
}  // namespace tug
