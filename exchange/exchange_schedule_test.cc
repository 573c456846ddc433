// SPDX-License-Identifier: Apache-2.0
// Schedules that change while pushes and pulls are open.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

constexpr uint64_t kSegmentBytes = kSegment * sizeof(float);

// One lane: a partition may span all three segments of a block.
class ScheduleExchangeTest : public ExchangeTest {
 protected:
  ScheduleExchangeTest() : ExchangeTest(CommConfig::BYTESCHEDULER, CommConfig::FP32, 1) {}

  void SetSchedule(uint64_t partition_segments, uint64_t credit_segments) {
    exchange_.SetSchedule({.number = 1,
                           .partition_bytes = partition_segments * kSegmentBytes,
                           .credit_bytes = credit_segments * kSegmentBytes},
                          now_);
  }
  // Segment counts of the partitions sent since the last call.
  std::vector<uint32_t> Cuts() {
    std::vector<uint32_t> cuts;
    for (const Outgoing& m : std::exchange(sent_, {})) cuts.push_back(m.header.segment_count);
    return cuts;
  }
};

TEST_F(ScheduleExchangeTest, CutsWhatComesAfterwardsAndLeavesWhatIsOpen) {
  Push(2);
  const std::vector<Outgoing> before = sent_;
  EXPECT_EQ(Cuts(), (std::vector<uint32_t>{1, 1, 1}));
  SetSchedule(3, 12);
  Push(1);
  const std::vector<Outgoing> after = sent_;
  EXPECT_EQ(Cuts(), (std::vector<uint32_t>{3}));
  Answer(after[0], MessageKind::kCommitted);
  for (const Outgoing& part : before) Answer(part, MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 2u);
  EXPECT_EQ(committed_[0].block, 1u);
  EXPECT_EQ(committed_[1].block, 2u);
  EXPECT_EQ(exchange_.counters().ignored, 0u);
}

TEST_F(ScheduleExchangeTest, IgnoresAnswersThatAreCutInOtherWays) {
  Push(1);
  Outgoing whole = sent_[0];
  whole.header.segment_count = 3;
  SetSchedule(3, 12);
  Answer(whole, MessageKind::kCommitted);
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  EXPECT_TRUE(committed_.empty());
}

TEST_F(ScheduleExchangeTest, RepeatsAPushAsItWasCut) {
  Push(1);
  sent_.clear();
  SetSchedule(3, 12);
  now_ += absl::Seconds(1);
  exchange_.OnTick(now_);
  EXPECT_EQ(Cuts(), (std::vector<uint32_t>{1, 1, 1}));
}

TEST_F(ScheduleExchangeTest, SendsWhatALargerCreditLets) {
  Push(2);
  Push(1);  // the credit covers one partition of it
  EXPECT_EQ(Cuts().size(), 4u);
  SetSchedule(1, 5);
  EXPECT_EQ(Cuts().size(), 1u);
}

TEST_F(ScheduleExchangeTest, HoldsBackUntilASmallerCreditHasRoom) {
  Push(2);
  Push(1);
  const std::vector<Outgoing> sent = sent_;
  ASSERT_EQ(Cuts().size(), 4u);
  SetSchedule(1, 2);
  for (size_t i = 0; i < 2; ++i) Answer(sent[i], MessageKind::kReceived);
  EXPECT_TRUE(Cuts().empty());
  Answer(sent[2], MessageKind::kReceived);
  EXPECT_EQ(Cuts().size(), 1u);
}

TEST_F(ScheduleExchangeTest, PutsWeightsTogetherAsTheyWereAskedFor) {
  std::vector<float> other(3 * kSegment, -1.0f);
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  const std::vector<Outgoing> before = std::exchange(sent_, {});
  ASSERT_EQ(before.size(), 3u);
  SetSchedule(3, 12);
  exchange_.Pull({2, Want::kExact, 7, other}, now_);
  const std::vector<Outgoing> after = std::exchange(sent_, {});
  ASSERT_EQ(after.size(), 1u);
  Answer(after[0], MessageKind::kWeights, std::vector<float>(3 * kSegment, 2.0f));
  for (const Outgoing& part : before) {
    Answer(part, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  }
  ASSERT_EQ(pulled_.size(), 2u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, 1.0f));
  EXPECT_EQ(other, std::vector<float>(3 * kSegment, 2.0f));
}

TEST_F(ScheduleExchangeTest, TakesNoLateWeightsOfAPullThatWasCutInOtherWays) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  const std::vector<Outgoing> before = std::exchange(sent_, {});
  for (const Outgoing& part : before) {
    Answer(part, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  }
  SetSchedule(3, 12);
  exchange_.Pull({1, Want::kExact, 8, destination_}, now_);
  Answer(before[0], MessageKind::kWeights, std::vector<float>(kSegment, 9.0f));
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  EXPECT_EQ(destination_[0], 1.0f);
}

}  // namespace
}  // namespace tug
