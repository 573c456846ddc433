// SPDX-License-Identifier: Apache-2.0
// Pulls: where weights are written, and when they stay in place.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

TEST_F(ExchangeTest, WritesWeightsWhereTheyBelongAndReportsTheBlockWhenWhole) {
  std::vector<float> destination(3 * kSegment, -1.0f);
  exchange_.Pull({1, Want::kExact, 7, destination}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  Answer(sent_[2], MessageKind::kWeights, std::vector<float>(kSegment, 3.0f));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment, 9.0f));  // a repeat
  EXPECT_TRUE(pulled_.empty());
  Answer(sent_[1], MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].version, 7u);
  EXPECT_EQ(destination[0], 1.0f);
  EXPECT_EQ(destination[kSegment], 2.0f);
  EXPECT_EQ(destination[3 * kSegment - 1], 3.0f);
}

TEST_F(ExchangeTest, SaysOfNumberedWeightsThatTheyHaveComeWantedOrNot) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  const std::vector<Outgoing> pulls = std::exchange(sent_, {});
  Answer(pulls[0], MessageKind::kWeights, std::vector<float>(kSegment));  // without an ack_id
  EXPECT_TRUE(sent_.empty());
  Outgoing numbered = pulls[1];
  numbered.header.ack_id = 77;
  Answer(numbered, MessageKind::kWeights, std::vector<float>(kSegment));
  Answer(numbered, MessageKind::kWeights, std::vector<float>(kSegment));  // late: not expected
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  ASSERT_EQ(sent_.size(), 2u);
  for (const Outgoing& word : sent_) {
    EXPECT_EQ(word.to, pulls[1].to);
    EXPECT_EQ(word.header.kind, MessageKind::kWeightsReceived);
    EXPECT_EQ(word.header.ack_id, 77u);
    EXPECT_EQ(word.header.job, 9u);
    EXPECT_TRUE(word.payload.bytes().empty());
  }
}

TEST_F(ExchangeTest, IgnoresWeightsOfAnotherVersionLengthLaneOrView) {
  std::vector<float> destination(3 * kSegment);
  exchange_.Pull({1, Want::kExact, 7, destination}, now_);
  Outgoing wrong = sent_[0];
  wrong.header.version = 6;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment - 1));
  wrong = sent_[0];
  wrong.to = LanePeer(0);
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  wrong = sent_[0];
  wrong.header.view = 2;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  wrong = sent_[0];
  wrong.header.block = 1000;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  EXPECT_EQ(exchange_.counters().ignored, 5u);
  EXPECT_EQ(exchange_.counters().pulled_bytes, 0u);
}

TEST_F(ExchangeTest, LeavesWeightsInPlaceThatLieInOnePiece) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  for (int i : {2, 0, 1}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].in_place.elements.data(), memory.floats().data());
  EXPECT_EQ(pulled_[0].in_place.elements.size(), 3 * kSegment);
  EXPECT_EQ(pulled_[0].in_place.leases.size(), 3u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, -1.0f));
}

TEST_F(ExchangeTest, CopiesWeightsThatLieApart) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  const Lease other = SharedWeights();
  AnswerInPlace(sent_[0], memory);
  AnswerInPlace(sent_[1], other);
  AnswerInPlace(sent_[2], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(0, std::memcmp(destination_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(ExchangeTest, CopiesWeightsThatAreNotAllTheSenders) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  AnswerInPlace(sent_[0], memory);
  AnswerInPlace(sent_[1], memory, Home::kReceiver);
  AnswerInPlace(sent_[2], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_EQ(0, std::memcmp(destination_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(ExchangeTest, CopiesWhereInPlaceIsNotAskedFor) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  std::weak_ptr<AlignedBuffer> held;
  {
    auto buffer = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    held = buffer;
    const Lease memory(std::move(buffer), std::as_const(*held.lock()).floats());
    for (int i = 0; i < 3; ++i) AnswerInPlace(sent_[i], memory);
  }
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, 0.0f));
}

}  // namespace
}  // namespace tug
