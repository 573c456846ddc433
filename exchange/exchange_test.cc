// SPDX-License-Identifier: Apache-2.0
// Pushes: order, credit, answers, repeats.

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

TEST_F(ExchangeTest, SendsPartitionsToTheLanesThatOwnThemWithinTheCredit) {
  Push(2);
  Push(1);
  ASSERT_EQ(sent_.size(), 4u);
  EXPECT_EQ(sent_[0].to, LanePeer(0));
  EXPECT_EQ(sent_[0].header.block, 2u);
  EXPECT_EQ(sent_[1].to, LanePeer(1));
  EXPECT_EQ(sent_[0].payload.size_bytes(), kSegment * sizeof(float));
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.size(), 5u);
}

TEST_F(ExchangeTest, LetsAnEarlierBlockOvertakeWhatWaits) {
  Push(2);
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.back().header.block, 0u);
}

class FifoExchangeTest : public ExchangeTest {
 protected:
  FifoExchangeTest() : ExchangeTest(CommConfig::FIFO) {}
};

TEST_F(FifoExchangeTest, SendsInTheOrderOfCompletion) {
  Push(2);
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.back().header.block, 1u);
}

class PriorityExchangeTest : public ExchangeTest {
 protected:
  PriorityExchangeTest() : ExchangeTest(CommConfig::PRIORITY) {}
};

TEST_F(PriorityExchangeTest, SendsTheBlockThatHasBegunToItsEndThenTheMostUrgent) {
  Push(2);
  Push(1);  // its first partition takes the rest of the credit
  Push(0);
  for (size_t i = 0; i < 5; ++i) Answer(sent_[i], MessageKind::kReceived);
  ASSERT_EQ(sent_.size(), 9u);
  const uint32_t expected[] = {2, 2, 2, 1, 1, 1, 0, 0, 0};
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(sent_[i].header.block, expected[i]) << i;
}

TEST_F(ExchangeTest, MeasuresTheMostBytesThatAreOnTheirWay) {
  Push(2);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 3 * kSegment * sizeof(float));
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
}

TEST_F(ExchangeTest, TakesBackAPartitionThatItsFirstSendingBroughtAfterAll) {
  Push(2);
  Push(1);
  Answer(sent_[0], MessageKind::kDeferred);
  Answer(sent_[0], MessageKind::kPushWanted);  // waits for credit
  Answer(sent_[0], MessageKind::kReceived);    // reply to a repeat that was stored
  for (size_t i = 1; i < 5; ++i) Answer(sent_[i], MessageKind::kReceived);
  EXPECT_EQ(sent_.size(), 6u) << "not a seventh";
}

TEST_F(ExchangeTest, ReportsAPushOnceAllPartitionsAreCommitted) {
  Push(0);
  for (int i = 0; i < 3; ++i) Answer(sent_[i], MessageKind::kReceived);
  for (int i = 0; i < 2; ++i) Answer(sent_[i], MessageKind::kCommitted);
  Answer(sent_[0], MessageKind::kCommitted);  // a repeat
  EXPECT_TRUE(committed_.empty());
  Answer(sent_[2], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_EQ(committed_[0].virtual_worker, 5u);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
}

TEST_F(ExchangeTest, TakesCommittedForReceivedWhenThatWasLost) {
  Push(2);
  Push(1);
  Answer(sent_[0], MessageKind::kCommitted);
  EXPECT_EQ(sent_.size(), 5u);
  Answer(sent_[0], MessageKind::kReceived);  // late: does not return credit twice
  EXPECT_EQ(sent_.size(), 5u);
}

TEST_F(ExchangeTest, CountsARefusalWhichBearsTheViewOfTheLane) {
  Push(0);
  sent_[0].header.view = 2;
  Answer(sent_[0], MessageKind::kRefused);
  EXPECT_EQ(exchange_.counters().refused, 1u);
  EXPECT_EQ(exchange_.counters().ignored, 0u);
}

TEST_F(ExchangeTest, SendsAgainWhatIsNotAnsweredInTime) {
  Push(0);
  std::vector<float> destination(3 * kSegment);
  exchange_.Pull({0, Want::kExact, 1, destination}, now_);
  const size_t before = sent_.size();
  now_ += absl::Milliseconds(999);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), before);
  now_ += absl::Milliseconds(1);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), 2 * before);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), 2 * before);
}

TEST_F(ExchangeTest, RepeatsAPushThatWaitsForAStragglerEverMoreRarely) {
  Push(0);
  for (int i = 0; i < 3; ++i) Answer(sent_[i], MessageKind::kReceived);
  std::vector<int> seconds;
  for (int second = 1; second <= 40; ++second) {
    const size_t before = sent_.size();
    now_ += absl::Seconds(1);
    exchange_.OnTick(now_);
    if (sent_.size() > before) seconds.push_back(second);
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15, 31}));
}

TEST_F(ExchangeTest, SendsADeferredPushAgainWhenItIsWanted) {
  Push(2);
  Push(1);  // 4 of 6 partitions fit the credit
  ASSERT_EQ(sent_.size(), 4u);
  Answer(sent_[1], MessageKind::kDeferred);
  EXPECT_EQ(sent_.size(), 5u);  // another partition gets its credit
  EXPECT_EQ(sent_.back().header.block, 1u);
  Answer(sent_[1], MessageKind::kPushWanted);
  Answer(sent_[1], MessageKind::kPushWanted);  // a repeat
  EXPECT_EQ(sent_.size(), 5u);                 // waits for credit
  Answer(sent_[0], MessageKind::kReceived);
  Answer(sent_[2], MessageKind::kReceived);
  ASSERT_EQ(sent_.size(), 7u);
  EXPECT_EQ(sent_[5].header.block, 1u);  // ordered by priority
  EXPECT_EQ(sent_[6].header.block, 2u);
  EXPECT_EQ(sent_[6].header, sent_[1].header);
  EXPECT_EQ(exchange_.counters().deferred, 1u);
}

TEST_F(ExchangeTest, SendsADeferredPushAgainByItselfEverMoreRarely) {
  Push(0);
  for (int i = 1; i < 3; ++i) Answer(sent_[i], MessageKind::kCommitted);
  Answer(sent_[0], MessageKind::kDeferred);
  std::vector<int> seconds;
  for (int second = 1; second <= 20; ++second) {
    const size_t before = sent_.size();
    now_ += absl::Seconds(1);
    exchange_.OnTick(now_);
    if (sent_.size() > before) {
      seconds.push_back(second);
      Answer(sent_.back(), MessageKind::kDeferred);
    }
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15}));
}

TEST_F(ExchangeTest, SendsAtOnceWhatIsWantedBeforeItWasDeferred) {
  Push(0);
  Answer(sent_[0], MessageKind::kPushWanted);
  ASSERT_EQ(sent_.size(), 4u);
  EXPECT_EQ(sent_[3].header, sent_[0].header);
  Answer(sent_[0], MessageKind::kDeferred);  // late: the next answer counts
  Answer(sent_[0], MessageKind::kReceived);
  Answer(sent_[0], MessageKind::kPushWanted);  // later still
  EXPECT_EQ(sent_.size(), 4u);
}

TEST_F(ExchangeTest, IgnoresAnswersToWhatWasNeverSent) {
  Push(2);
  Push(1);
  Outgoing unsent = sent_[3];
  unsent.header.first_segment = 2;
  unsent.to = sent_[2].to;
  unsent.header.block = 1;
  for (uint32_t segment : {1u, 2u}) {
    unsent.header.first_segment = segment;
    unsent.to = LanePeer((3 + segment) % 2);
    for (MessageKind kind : {MessageKind::kReceived, MessageKind::kCommitted,
                             MessageKind::kDeferred, MessageKind::kPushWanted}) {
      Answer(unsent, kind);
    }
  }
  unsent.header.virtual_worker = 4000;
  Answer(unsent, MessageKind::kCommitted);
  unsent.header.virtual_worker = 0xffffffffu;
  Answer(unsent, MessageKind::kCommitted);
  EXPECT_EQ(exchange_.counters().ignored, 10u);
  EXPECT_EQ(sent_.size(), 4u);
}

// A lane that defers and answers late, twice, out of order or never: every push is committed once,
// and all credit returns.
TEST_F(ExchangeTest, CommitsEveryPushOnceForAnyOrderOfReplies) {
  std::mt19937_64 random(11);
  std::vector<Outgoing> seen;
  std::vector<std::pair<Outgoing, MessageKind>> answers;
  for (uint64_t clock = 0; clock < 300; ++clock) {
    for (uint32_t block : {2u, 1u, 0u}) Push(block, clock);
    while (exchange_.open_pushes() > 6) {
      for (Outgoing& message : std::exchange(sent_, {})) seen.push_back(std::move(message));
      const size_t pick = random() % seen.size();
      // kCommitted is final; any reply may precede it.
      static constexpr MessageKind kAnswers[] = {MessageKind::kReceived, MessageKind::kDeferred,
                                                 MessageKind::kPushWanted, MessageKind::kCommitted};
      for (uint64_t n = random() % 3; n > 0; --n) Answer(seen[pick], kAnswers[random() % 4]);
      if (random() % 8 == 0) {
        now_ += absl::Milliseconds(300);
        exchange_.OnTick(now_);
      }
      if (seen.size() > 400) seen.erase(seen.begin(), seen.begin() + 200);
    }
  }
  while (exchange_.open_pushes() > 0) {
    for (Outgoing& message : std::exchange(sent_, {})) {
      Answer(message, MessageKind::kCommitted);
    }
    now_ += absl::Seconds(100);
    exchange_.OnTick(now_);
  }
  EXPECT_EQ(committed_.size(), 900u);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
  sent_.clear();
  Push(2, 1000);
  Push(1, 1000);
  EXPECT_EQ(sent_.size(), 4u);  // the whole credit, no more
}

}  // namespace
}  // namespace tug
