// SPDX-License-Identifier: Apache-2.0
// Weights sent as changes of the previous ones.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "blocks/weight_changes.h"
#include "compression/codec.h"
#include "compression/codecs/frames.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

constexpr double kDensity = 0.1;

// The weights of version v are v + 0.5 for the first tenth of each segment, else 0.5.
class ChangesPullTest : public ExchangeTest {
 protected:
  ChangesPullTest() : ExchangeTest(CommConfig::CHANGES) {}

  static std::vector<float> Weights(uint64_t version, size_t elements = kSegment) {
    std::vector<float> weights(elements, 0.5f);
    for (size_t i = 0; i < elements; ++i) {
      if (i % kSegment < kSegment / 10) weights[i] += static_cast<float>(version);
    }
    return weights;
  }
  static std::vector<std::byte> ChangeFrame() {
    std::vector<float> change = Weights(1);
    for (float& element : change) element -= 0.5f;
    const TopKCodec codec = ChangesCodec(kDensity);
    std::vector<std::byte> frame(MaxFrameBytes(&codec, kSegment));
    CodecScratch scratch;
    frame.resize(WriteFrame(kChangesCodecId, &codec, {}, change, {}, frame, scratch));
    return frame;
  }
  void Pull(uint64_t version, std::span<float> destination) {
    sent_.clear();
    exchange_.Pull(
        {.block = 1, .clock = version, .destination = destination, .allow_in_place = true}, now_);
  }
  void Pull(uint64_t version) { Pull(version, destination_); }
  void AnswerWhole(const Outgoing& to) {
    Outgoing whole = to;
    whole.header.codec = Codec::kNone;
    whole.header.version = to.header.clock;
    Answer(whole, MessageKind::kWeights, Weights(to.header.clock));
  }
  void AnswerChanges(const Outgoing& to, const std::vector<std::byte>& frame = ChangeFrame()) {
    const auto payload = std::make_shared<std::vector<std::byte>>(frame);
    Message message{to.header, Lease(payload, std::span<const std::byte>(*payload)), Home::kSender};
    message.header.kind = MessageKind::kWeights;
    message.header.sender = to.to;
    message.header.version = to.header.clock;
    exchange_.OnMessage(message, now_);
  }
  void PullWhole(uint64_t version) {
    Pull(version);
    for (const Outgoing& pull : std::vector<Outgoing>(sent_)) AnswerWhole(pull);
    ASSERT_EQ(destination_, Weights(version, 3 * kSegment));
  }
  std::vector<uint64_t> Held() const {
    std::vector<uint64_t> held;
    for (const Outgoing& pull : sent_) {
      EXPECT_EQ(pull.header.codec, Codec::kChanges);
      held.push_back(pull.header.version);
    }
    return held;
  }
  using Versions = std::vector<uint64_t>;
};

TEST_F(ChangesPullTest, SaysWhatItHoldsAndAddsWhatHasChanged) {
  Pull(7);
  EXPECT_EQ(Held(), Versions({kNoVersion, kNoVersion, kNoVersion}));
  PullWhole(7);
  for (uint64_t version = 8; version < 11; ++version) {
    Pull(version);
    EXPECT_EQ(Held(), Versions({version - 1, version - 1, version - 1}));
    for (const Outgoing& pull : std::vector<Outgoing>(sent_)) AnswerChanges(pull);
    EXPECT_EQ(destination_, Weights(version, 3 * kSegment));
    EXPECT_EQ(pulled_.back().version, version);
    EXPECT_TRUE(pulled_.back().in_place.elements.empty());
  }
  EXPECT_EQ(exchange_.counters().ignored, 0u);
}

TEST_F(ChangesPullTest, AddsAChangeOnceHoweverOftenItComes) {
  PullWhole(7);
  Pull(8);
  const std::vector<Outgoing> asked = sent_;
  for (int i = 0; i < 3; ++i) AnswerChanges(asked[0]);
  now_ += absl::Seconds(2);
  exchange_.OnTick(now_);
  for (const Outgoing& pull : asked) AnswerChanges(pull);
  EXPECT_EQ(destination_, Weights(8, 3 * kSegment));
  for (const Outgoing& pull : asked) AnswerChanges(pull);
  Pull(9);
  for (const Outgoing& pull : asked) AnswerChanges(pull);
  EXPECT_EQ(destination_, Weights(8, 3 * kSegment)) << "of the version before";
  EXPECT_EQ(Held(), Versions({8, 8, 8}));
}

TEST_F(ChangesPullTest, AddsNothingToWhatItDoesNotHold) {
  Pull(8);
  for (const Outgoing& pull : std::vector<Outgoing>(sent_)) AnswerChanges(pull);
  EXPECT_EQ(exchange_.counters().ignored, 3u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, -1.0f));
}

TEST_F(ChangesPullTest, AsksForAllOfThemInAnotherDestination) {
  PullWhole(7);
  std::vector<float> other(3 * kSegment);
  Pull(8, other);
  EXPECT_EQ(Held(), Versions({kNoVersion, kNoVersion, kNoVersion}));
}

TEST_F(ChangesPullTest, KnowsBySegmentWhatAPullThatWasSupersededHasBrought) {
  PullWhole(7);
  Pull(8);
  const std::vector<Outgoing> asked = sent_;
  AnswerChanges(asked[1]);
  Pull(8);
  EXPECT_EQ(Held(), Versions({7, 8, 7}));
  // Partitioned again: a partition has two segments of different versions.
  exchange_.SetSchedule({.number = 1,
                         .partition_bytes = 3 * kSegment * sizeof(float),
                         .credit_bytes = 3 * kSegment * sizeof(float)},
                        now_);
  sent_.clear();
  exchange_.SetView({.view = 2, .lane_of_segment = std::vector<uint32_t>(9, 0)}, now_);
  EXPECT_EQ(Held(), Versions({kNoVersion}));
  Outgoing whole = sent_[0];
  whole.header.codec = Codec::kNone;
  whole.header.version = whole.header.clock;
  Answer(whole, MessageKind::kWeights, Weights(8, 3 * kSegment));
  EXPECT_EQ(destination_, Weights(8, 3 * kSegment));
  Pull(9);
  EXPECT_EQ(Held(), Versions({8}));
}

TEST_F(ChangesPullTest, IgnoresWhatIsMalformedAndAsksAgain) {
  PullWhole(7);
  Pull(8);
  const std::vector<Outgoing> asked = sent_;
  const std::vector<std::byte> good = ChangeFrame();
  std::vector<std::byte> longer = good, not_finite(8), other_codec = good;
  longer.resize(good.size() + 8);
  not_finite[4] = std::byte{kChangesCodecId};
  not_finite[5] = std::byte{1};
  other_codec[4] = std::byte{PushCodecConfig::kRandomK};
  const std::vector<std::byte> shorter(good.begin(), good.end() - 8);
  for (const auto& bad : {longer, shorter, not_finite, other_codec, std::vector<std::byte>()}) {
    AnswerChanges(asked[0], bad);
  }
  EXPECT_EQ(exchange_.counters().ignored, 5u);
  EXPECT_EQ(destination_, Weights(7, 3 * kSegment));
  // Complete frames with undecodable content: the elements that they overwrote do not count as
  // weights.
  std::vector<std::byte> broken = good;
  std::fill(broken.begin() + 8, broken.begin() + 12, std::byte{0xff});
  AnswerChanges(asked[0], broken);
  now_ += absl::Seconds(2);
  sent_.clear();
  exchange_.OnTick(now_);
  EXPECT_EQ(Held(), Versions({kNoVersion, 7, 7}));
  for (const Outgoing& pull : std::vector<Outgoing>(sent_)) {
    pull.header.version == kNoVersion ? AnswerWhole(pull) : AnswerChanges(pull);
  }
  EXPECT_EQ(destination_, Weights(8, 3 * kSegment));
}

}  // namespace
}  // namespace tug
