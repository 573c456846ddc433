// SPDX-License-Identifier: Apache-2.0
// An exchange that chooses the format of pushes and pulls for each link.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "compression/codecs/frames.h"
#include "compression/dense/int8.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

// Lane 1 is reached over a simulated link, lane 0 through shared memory.
class AutoExchangeTest : public ExchangeTest {
 protected:
  AutoExchangeTest() {
    ExchangeOptions options = CodecOptions(Codec());
    options.comm.set_pull_format(CommConfig::PULL_AUTO);
    ExchangeSinks sinks = Sinks();
    sinks.shares_memory = [](PeerId peer) { return peer == LanePeer(0); };
    auto_.emplace(options, table_, sinks);
  }
  static PushCodecConfig Codec() {
    PushCodecConfig codec;
    codec.mutable_auto_()->set_candidates("int8,top_k_int8");
    codec.mutable_auto_()->set_max_residual(1e6);
    codec.set_blocks("*");
    codec.set_error_feedback(true);
    return codec;
  }
  void PushBlock(uint32_t block, uint64_t clock) {
    auto gradient = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    for (uint32_t e = 0; e < 3 * kSegment; ++e) gradient->floats()[e] = 1.0f + e;
    auto_->Push({block, 5, 1, clock, 100, Lease(gradient, std::as_const(*gradient).floats())},
                now_);
  }
  void AnswerPush(const Outgoing& push, MessageKind kind) {
    Message message{push.header, Lease()};
    message.header.kind = kind;
    message.header.sender = push.to;
    auto_->OnMessage(message, now_);
  }
  // Commits all pushes. Those to lane 1 take the time of a link of this rate.
  void CommitAll(double bytes_per_second) {
    for (const Outgoing& push : std::exchange(sent_, {})) {
      if (push.to != LanePeer(0)) {
        now_ += absl::Seconds(static_cast<double>(push.payload.size_bytes()) / bytes_per_second);
      }
      AnswerPush(push, MessageKind::kCommitted);
    }
  }
  void AnswerPull(const Outgoing& pull) {
    const std::vector<float> weights(kSegment, 0.25f);
    const bool int8 = pull.header.codec == tug::Codec::kInt8;
    auto payload = std::make_shared<std::vector<std::byte>>(int8 ? Int8Bytes(kSegment)
                                                                 : kSegment * sizeof(float));
    if (int8) {
      EncodeInt8Weights(weights, *payload);
    } else {
      std::memcpy(payload->data(), weights.data(), payload->size());
    }
    Message message{pull.header, Lease(payload, std::span<const std::byte>(*payload))};
    message.home = pull.to == LanePeer(0) ? Home::kSender : Home::kReceiver;
    message.header.kind = MessageKind::kWeights;
    message.header.version = pull.header.clock;
    message.header.sender = pull.to;
    auto_->OnMessage(message, now_);
  }
  static std::set<uint8_t> CodecsOf(const Outgoing& push) {
    std::set<uint8_t> codecs;
    std::span<const std::byte> bytes = push.payload.bytes();
    for (uint32_t i = 0; i < push.header.segment_count; ++i) {
      const std::optional<Frame> frame = TakeFrame(kSegment, bytes);
      EXPECT_TRUE(frame.has_value());
      if (frame.has_value()) codecs.insert(frame->codec);
    }
    return codecs;
  }

  std::optional<Exchange> auto_;
};

constexpr auto kTopK = static_cast<uint8_t>(PushCodecConfig::kTopKInt8);

TEST_F(AutoExchangeTest, EncodesForALinkAndPushesInPlaceThroughSharedMemory) {
  for (uint64_t clock = 0; clock < 8; ++clock) {
    for (uint32_t block = 3; block-- > 0;) {
      PushBlock(block, clock);
      CommitAll(1e6);
    }
  }
  PushBlock(1, 8);
  ASSERT_EQ(sent_.size(), 3u);
  for (const Outgoing& push : sent_) {
    if (push.to == LanePeer(0)) {
      EXPECT_EQ(push.header.codec, tug::Codec::kNone);
      EXPECT_EQ(push.payload.size_bytes(), kSegment * sizeof(float));
    } else {
      EXPECT_EQ(push.header.codec, tug::Codec::kFrames);
      EXPECT_EQ(CodecsOf(push), std::set<uint8_t>{kTopK});
    }
  }
  const LinkChoices choices = auto_->choices();
  ASSERT_EQ(choices.pushes.size(), 2u);
  EXPECT_EQ(choices.push_names[choices.pushes[1].method], "top_k_int8");
  EXPECT_NEAR(choices.pushes[1].bytes_per_second, 1e6, 1e5);
  EXPECT_EQ(choices.pushes[0].bytes_per_second, 0);
}

// During the warmup, pushes of few rows are sent as ranges.
TEST_F(AutoExchangeTest, LearnsOfALinkByRunsToo) {
  PushCodecConfig codec = Codec();
  codec.set_warmup_steps(1);
  auto_.emplace(CodecOptions(codec), table_, Sinks());
  auto gradient = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
  const ElementRuns runs = {{kSegment, kSegment + 1000}};
  auto_->Push({0, 5, 1, 0, 100, Lease(gradient, std::as_const(*gradient).floats()), runs}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  ASSERT_EQ(sent_[1].header.codec, tug::Codec::kRuns);
  EXPECT_GT(sent_[1].payload.size_bytes(), 1000 * sizeof(float));
  now_ += absl::Seconds(1);
  AnswerPush(sent_[1], MessageKind::kCommitted);
  auto_->OnTick(now_);
  for (uint64_t clock = 1; clock < 8; ++clock) {
    PushBlock(1, clock);
    CommitAll(1e6);
  }
  for (const CodecChooser::Chosen& link : auto_->choices().pushes) {
    EXPECT_NEAR(link.bytes_per_second, 1e6, 1e5) << link.lane;
  }
}

TEST_F(AutoExchangeTest, ARepeatHasTheSameBytesAndTellsNothingOfTheLink) {
  for (uint64_t clock = 0; clock < 8; ++clock) {
    PushBlock(0, clock);
    CommitAll(1e6);
  }
  PushBlock(0, 8);
  const std::vector<Outgoing> first = sent_;
  sent_.clear();
  now_ += absl::Seconds(100);
  auto_->OnTick(now_);
  ASSERT_EQ(sent_.size(), first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(sent_[i].header.codec, first[i].header.codec);
    ASSERT_EQ(sent_[i].payload.size_bytes(), first[i].payload.size_bytes());
    EXPECT_EQ(0, std::memcmp(sent_[i].payload.bytes().data(), first[i].payload.bytes().data(),
                             first[i].payload.size_bytes()));
  }
  const double before = auto_->choices().pushes[1].bytes_per_second;
  for (const Outgoing& push : std::exchange(sent_, {})) AnswerPush(push, MessageKind::kCommitted);
  EXPECT_EQ(auto_->choices().pushes[1].bytes_per_second, before);
}

TEST_F(AutoExchangeTest, RepartitionedPushHasSameElements) {
  PushBlock(0, 0);
  const std::vector<Outgoing> first = sent_;
  sent_.clear();
  auto_->SetSchedule({.number = 1,
                      .partition_bytes = 3 * kSegment * sizeof(float),
                      .credit_bytes = 4 * kSegment * sizeof(float)},
                     now_);
  auto_->SetView({2, std::vector<uint32_t>(table_.size(), 1)}, now_);
  ASSERT_EQ(sent_.size(), 1u);
  ASSERT_EQ(sent_[0].header.segment_count, 3u);
  std::vector<float> again(3 * kSegment), before(3 * kSegment);
  std::span<const std::byte> bytes = sent_[0].payload.bytes();
  if (sent_[0].header.codec == tug::Codec::kNone) {
    std::memcpy(again.data(), bytes.data(), bytes.size());
  } else {
    for (size_t begin = 0; begin < again.size(); begin += kSegment) {
      const auto frame = TakeFrame(kSegment, bytes);
      ASSERT_TRUE(frame.has_value() &&
                  DecodeFrame(*frame, DecodeTo::kStore, std::span(again).subspan(begin, kSegment)));
    }
  }
  for (const Outgoing& push : first) {
    const auto of = std::span(before).subspan(push.header.first_segment * kSegment, kSegment);
    std::span<const std::byte> part = push.payload.bytes();
    if (push.header.codec == tug::Codec::kNone) {
      std::memcpy(of.data(), part.data(), part.size());
    } else {
      const auto frame = TakeFrame(kSegment, part);
      ASSERT_TRUE(frame.has_value() && DecodeFrame(*frame, DecodeTo::kStore, of));
    }
  }
  EXPECT_EQ(again, before);
}

TEST_F(AutoExchangeTest, PullsInt8OverASlowLinkAndFp32ThroughSharedMemory) {
  for (uint64_t version = 1; version < 8; ++version) {
    for (uint32_t block = 0; block < 3; ++block) {
      now_ += absl::Milliseconds(1);
      auto_->Pull({block, Want::kExact, version, destination_, /*allow_in_place=*/true}, now_);
    }
    ASSERT_EQ(sent_.size(), 9u);
    for (const Outgoing& pull : std::exchange(sent_, {})) {
      if (pull.to == LanePeer(0)) {
        EXPECT_EQ(pull.header.codec, tug::Codec::kNone);
      } else {
        now_ += absl::Milliseconds(10);
        if (version == 7) {
          EXPECT_EQ(pull.header.codec, tug::Codec::kInt8);
        }
      }
      AnswerPull(pull);
    }
    ASSERT_EQ(pulled_.size(), 3 * version) << "whichever format";
  }
  EXPECT_EQ(auto_->counters().ignored, 0u);
  for (const float weight : destination_) ASSERT_NEAR(weight, 0.25f, 1e-3f);
}

TEST_F(AutoExchangeTest, TakesNoAnswerInAFormatThatItDidNotAskFor) {
  auto_->Pull({0, Want::kExact, 1, destination_}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  Outgoing other = sent_[0];
  other.header.codec =
      other.header.codec == tug::Codec::kInt8 ? tug::Codec::kNone : tug::Codec::kInt8;
  AnswerPull(other);
  EXPECT_EQ(auto_->counters().ignored, 1u);
  for (const Outgoing& pull : std::exchange(sent_, {})) AnswerPull(pull);
  EXPECT_EQ(pulled_.size(), 1u);
}

}  // namespace
}  // namespace tug
