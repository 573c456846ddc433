// SPDX-License-Identifier: Apache-2.0
// Weights sent as int8.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "compression/dense/int8.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

class Int8PullTest : public ExchangeTest {
 protected:
  Int8PullTest() : ExchangeTest(CommConfig::BYTESCHEDULER, CommConfig::INT8) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] = std::sin(0.01f * static_cast<float>(i));
    }
  }

  // Answers from shared memory, with `missing` bytes too few.
  void AnswerEncoded(const Outgoing& to, size_t missing = 0) {
    const auto part = std::span(weights_).subspan(to.header.first_segment * kSegment, kSegment);
    const auto encoded = std::make_shared<std::vector<std::byte>>(Int8Bytes(kSegment));
    EncodeInt8Weights(part, *encoded);
    Message message{to.header, Lease(), Home::kSender};
    message.header.kind = MessageKind::kWeights;
    message.header.version = to.header.clock;
    message.header.sender = to.to;
    message.payload =
        Lease(encoded, std::span<const std::byte>(*encoded).first(encoded->size() - missing));
    exchange_.OnMessage(message, now_);
  }
  std::vector<float> Decoded() const {
    std::vector<float> decoded(weights_.size());
    std::vector<std::byte> encoded(Int8Bytes(kSegment));
    for (size_t begin = 0; begin < weights_.size(); begin += kSegment) {
      EncodeInt8Weights(std::span(weights_).subspan(begin, kSegment), encoded);
      DecodeInt8Weights(encoded, std::span(decoded).subspan(begin, kSegment));
    }
    return decoded;
  }

  std::vector<float> weights_ = std::vector<float>(3 * kSegment);
};

TEST_F(Int8PullTest, DecodesEverySegmentIntoItsPlace) {
  exchange_.Pull({1, Want::kExact, 7, destination_, /*allow_in_place=*/true, {{0, 1}}}, now_);
  ASSERT_EQ(sent_.size(), 3u) << "runs are ignored";
  for (const int i : {1, 2, 0}) {
    EXPECT_EQ(sent_[i].header.codec, Codec::kInt8);
    EXPECT_EQ(sent_[i].payload.size_bytes(), 0u);
    AnswerEncoded(sent_[i]);
  }
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(destination_, Decoded());
  EXPECT_EQ(exchange_.counters().pulled_bytes, 3 * Int8Bytes(kSegment));
}

TEST_F(Int8PullTest, IgnoresWhatIsOfAnotherSizeOrFormat) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  const std::vector<Outgoing> asked = sent_;
  AnswerEncoded(asked[0], 1);
  Outgoing full = asked[0];
  full.header.codec = Codec::kNone;
  Answer(full, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  EXPECT_EQ(exchange_.counters().ignored, 2u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, -1.0f));
  for (const Outgoing& pull : asked) AnswerEncoded(pull);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(destination_, Decoded());
}

TEST_F(Int8PullTest, BringsNaNsForAGroupThatIsNotFinite) {
  weights_[kSegment + 300] = std::numeric_limits<float>::infinity();
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  for (const Outgoing& pull : std::vector<Outgoing>(sent_)) AnswerEncoded(pull);
  ASSERT_EQ(pulled_.size(), 1u);
  for (size_t i = 0; i < destination_.size(); ++i) {
    ASSERT_EQ(std::isnan(destination_[i]), i / kInt8Group == (kSegment + 300) / kInt8Group) << i;
  }
}

}  // namespace
}  // namespace tug
