// SPDX-License-Identifier: Apache-2.0
// Messages that an exchange sends and accepts under policies other than BSP.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

class BackupTest : public ExchangeTest {
 protected:
  BackupTest() : ExchangeTest(SyncConfig::BACKUP) {}
};

class UpdatePerPushTest : public ExchangeTest {
 protected:
  UpdatePerPushTest() : ExchangeTest(SyncConfig::ASP) {}

  std::vector<Outgoing> Pull(uint64_t clock, Want want = Want::kAtLeast,
                             VirtualWorkerRun virtual_workers = {5, 2}) {
    sent_.clear();
    exchange_.Pull({.block = 1,
                    .want = want,
                    .clock = clock,
                    .destination = destination_,
                    .virtual_workers = virtual_workers},
                   now_);
    return std::exchange(sent_, {});
  }
  // Zeros for all requested elements.
  static Lease WeightsFor(const Outgoing& pull) {
    const auto zeros = std::make_shared<AlignedBuffer>(kSegment * sizeof(float));
    const std::span<const float> weights = std::as_const(*zeros).floats();
    if (pull.header.codec == Codec::kNone) return Lease(zeros, weights);
    const ElementRuns runs = DecodeRuns(pull.payload.bytes(), kSegment, false)->runs;
    const auto encoded = std::make_shared<AlignedBuffer>(EncodedBytes(runs, true));
    EncodeRuns(runs, weights, {encoded->data(), encoded->size_bytes()});
    return Lease(encoded, std::as_const(*encoded).floats());
  }
  void AnswerAt(const Outgoing& pull, uint64_t version) {
    Outgoing weights = pull;
    weights.header.version = version;
    Answer(weights, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  }
};

TEST_F(UpdatePerPushTest, APullSaysWhoseItIsAndWhatItBegins) {
  for (const Outgoing& pull : Pull(4)) {
    EXPECT_EQ(pull.header.clock, 4u);
    EXPECT_EQ(pull.header.want, Want::kAtLeast);
    EXPECT_EQ(pull.header.virtual_worker, 5u);
    EXPECT_EQ(pull.header.virtual_worker_count, 2u);
  }
}

// A repeated message has a version that would suffice for the next pull, but lacks the pushes that
// this worker has made since.
TEST_F(UpdatePerPushTest, ALateAnswerToThePullBeforeIsNotTaken) {
  const std::vector<Outgoing> first = Pull(4);
  for (const Outgoing& pull : first) AnswerAt(pull, 20);
  ASSERT_EQ(pulled_.size(), 1u);
  const std::vector<Outgoing> second = Pull(5);
  for (const Outgoing& pull : first) AnswerAt(pull, 22);
  EXPECT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(exchange_.counters().ignored, 3u);
  for (const Outgoing& pull : second) AnswerAt(pull, 23);
  EXPECT_EQ(pulled_.size(), 2u);
  // The same clock again, with kExact.
  const std::vector<Outgoing> exact = Pull(5, Want::kExact);
  for (const Outgoing& pull : second) AnswerAt(pull, 24);
  EXPECT_EQ(pulled_.size(), 2u);
  for (const Outgoing& pull : exact) AnswerAt(pull, 24);
  EXPECT_EQ(pulled_.size(), 3u);
}

TEST_F(UpdatePerPushTest, SaysWhichVersionsCame) {
  const std::vector<Outgoing> pulls = Pull(4);
  AnswerAt(pulls[0], 21);
  AnswerAt(pulls[1], 20);
  AnswerAt(pulls[2], 23);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].version, 20u);
  EXPECT_EQ(pulled_[0].newest, 23u);
  EXPECT_EQ(pulled_[0].clock, 4u);
}

// The push waits for credit while newer weights arrive; its gradient was computed with the older
// ones.
TEST_F(UpdatePerPushTest, APushSaysTheVersionOfTheWeightsItIsAGradientOf) {
  const std::vector<Outgoing> pulls = Pull(4);
  for (size_t p = 0; p < 3; ++p) AnswerAt(pulls[p], 20 + p);
  Push(0, 4);
  Push(1, 4);  // the credit covers four partitions
  std::vector<Outgoing> pushes = std::exchange(sent_, {});
  for (const Outgoing& pull : Pull(5)) AnswerAt(pull, 40);
  for (const Outgoing& push : pushes) Answer(push, MessageKind::kReceived);
  pushes.insert(pushes.end(), sent_.begin(), sent_.end());
  ASSERT_EQ(pushes.size(), 6u);
  for (const Outgoing& push : pushes) {
    EXPECT_EQ(push.header.clock, 4u);
    EXPECT_EQ(push.header.version, push.header.block == 0 ? 0 : 20 + push.header.first_segment);
  }
}

TEST_F(UpdatePerPushTest, ALateAnswerToAPullForOthersIsNotTaken) {
  const std::vector<Outgoing> first = Pull(4);
  const std::vector<Outgoing> second = Pull(4, Want::kAtLeast, {7, 2});
  pulled_.clear();
  for (const Outgoing& pull : first) AnswerAt(pull, 20);
  EXPECT_TRUE(pulled_.empty());
  for (const Outgoing& pull : second) AnswerAt(pull, 21);
  EXPECT_EQ(pulled_.size(), 1u);
}

// Its gradient is zero, so it fits any version of the weights. The versions of other partitions may
// be ahead of its lane.
TEST_F(UpdatePerPushTest, UntouchedPartitionIsPushedForAnyVersion) {
  const ElementRuns rows = {{10, 20}, {2 * kSegment, 2 * kSegment + 7}};  // segments 0 and 2
  AlignedBuffer memory(3 * kSegment * sizeof(float));
  for (uint64_t clock : {4, 5}) {
    exchange_.Pull({.block = 1,
                    .want = Want::kAtLeast,
                    .clock = clock,
                    .destination = memory.floats(),
                    .runs = clock == 4 ? rows : ElementRuns()},
                   now_);
    const std::vector<Outgoing> pulls = std::exchange(sent_, {});
    ASSERT_EQ(pulls.size(), clock == 4 ? 2u : 3u);
    for (const Outgoing& pull : pulls) {
      Message weights{pull.header, Lease()};
      weights.header.kind = MessageKind::kWeights;
      weights.header.sender = pull.to;
      weights.header.version = 5 * clock + pull.header.first_segment;
      weights.payload = WeightsFor(pull);
      exchange_.OnMessage(weights, now_);
    }
    ASSERT_EQ(pulled_.size(), clock - 3);
    EXPECT_EQ(pulled_.back().version, 5 * clock);
    EXPECT_EQ(pulled_.back().newest, 5 * clock + 2);
    Push(1, clock, rows);
    const std::vector<Outgoing> pushes = std::exchange(sent_, {});
    ASSERT_EQ(pushes.size(), 3u);
    for (const Outgoing& push : pushes) {
      const uint32_t segment = push.header.first_segment;
      const bool untouched = clock == 4 && segment == 1;
      EXPECT_EQ(push.header.version, untouched ? kAnyWeightsVersion : 5 * clock + segment);
      Answer(push, MessageKind::kCommitted);
    }
  }
}

TEST_F(BackupTest, APushThatCameTooLateIsOverAndSaysSo) {
  Push(1, 4);
  const std::vector<Outgoing> pushes = std::exchange(sent_, {});
  ASSERT_EQ(pushes.size(), 3u);
  for (const Outgoing& push : pushes) EXPECT_EQ(push.header.version, 4u);
  Answer(pushes[0], MessageKind::kCommitted);
  Answer(pushes[1], MessageKind::kReceived);
  Answer(pushes[1], MessageKind::kDropped);
  EXPECT_TRUE(committed_.empty());
  Answer(pushes[2], MessageKind::kDropped);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_TRUE(committed_[0].dropped);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
  EXPECT_EQ(exchange_.counters().dropped, 2u);
  Answer(pushes[2], MessageKind::kDropped);  // a repeat
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  // The slot is reused.
  Push(1, 5);
  for (const Outgoing& push : std::exchange(sent_, {})) Answer(push, MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 2u);
  EXPECT_FALSE(committed_[1].dropped);
}

TEST_F(BackupTest, TakesNewerWeightsThanItAskedFor) {
  exchange_.Pull({1, Want::kAtLeast, 4, destination_}, now_);
  std::vector<Outgoing> pulls = std::exchange(sent_, {});
  for (uint64_t version = 3; Outgoing & pull : pulls) {  // 3 is too old
    pull.header.version = version++;
    Answer(pull, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  }
  EXPECT_TRUE(pulled_.empty());
  pulls[0].header.version = 4;
  Answer(pulls[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].version, 4u);
  EXPECT_EQ(pulled_[0].newest, 5u);
}

}  // namespace
}  // namespace tug
