// SPDX-License-Identifier: Apache-2.0
// Pushes of a job with comm.push_codec.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compression/codecs/frames.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

// bf16 with error feedback for the blocks "second" and "third".
class CodecExchangeTest : public ExchangeTest {
 protected:
  CodecExchangeTest() : ExchangeTest(Codec()) {}

  static PushCodecConfig Codec() {
    PushCodecConfig codec;
    codec.mutable_bf16();
    codec.set_blocks("second,third");
    codec.set_error_feedback(true);
    codec.set_warmup_steps(1);
    return codec;
  }
  static std::vector<float> Elements(const Outgoing& push) {
    std::vector<float> elements(kSegment * push.header.segment_count);
    std::span<const std::byte> bytes = push.payload.bytes();
    for (uint32_t i = 0; i < push.header.segment_count; ++i) {
      const std::optional<Frame> frame = TakeFrame(kSegment, bytes);
      EXPECT_TRUE(frame.has_value() &&
                  DecodeFrame(*frame, DecodeTo::kStore,
                              std::span(elements).subspan(i * kSegment, kSegment)));
    }
    EXPECT_TRUE(bytes.empty());
    return elements;
  }
  static bool SameBytes(const Lease& a, const Lease& b) {
    return a.size_bytes() == b.size_bytes() &&
           std::memcmp(a.bytes().data(), b.bytes().data(), a.size_bytes()) == 0;
  }
  double Squares() const {
    const std::span<const double> squares = exchange_.residual_squares();
    return squares.size() > 5 ? squares[5] : 0;
  }
};

constexpr uint64_t kFrame = FrameBytes(kSegment * sizeof(uint16_t));

TEST_F(CodecExchangeTest, PushesFramesRunsOrNot) {
  Push(2, 1);
  Push(1, 1, {{0, 1}});
  ASSERT_EQ(sent_.size(), 6u);  // all fit the credit
  for (const Outgoing& message : sent_) {
    EXPECT_EQ(message.header.codec, tug::Codec::kFrames);
    EXPECT_EQ(message.payload.size_bytes(), kFrame);
  }
  EXPECT_EQ(Elements(sent_[0])[2], 3.0f);
  EXPECT_EQ(exchange_.counters().pushed_bytes, 6 * kFrame);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 6 * kFrame);
}

TEST_F(CodecExchangeTest, PushesOtherBlocksAndTheWarmupAsWithoutACodec) {
  Push(0, 1);
  Push(1, 0, {{0, 1}});
  ASSERT_GE(sent_.size(), 4u);
  EXPECT_EQ(sent_[0].header.codec, tug::Codec::kNone);
  EXPECT_EQ(sent_[3].header.codec, tug::Codec::kRuns);
  EXPECT_EQ(Squares(), 0);
}

TEST_F(CodecExchangeTest, ARepeatHasTheSameBytes) {
  Push(1, 1);
  const double squares = Squares();
  EXPECT_GT(squares, 0);
  now_ += absl::Seconds(1);
  exchange_.OnTick(now_);
  ASSERT_EQ(sent_.size(), 6u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SameBytes(sent_[i].payload, sent_[i + 3].payload));
  EXPECT_EQ(Squares(), squares);
  EXPECT_EQ(exchange_.counters().pushed_bytes, 6 * kFrame);
}

TEST_F(CodecExchangeTest, APushThatIsCutAnewHasTheSameFrames) {
  Push(1, 1);
  ASSERT_EQ(sent_.size(), 3u);
  const double squares = Squares();
  exchange_.SetSchedule({.number = 1,
                         .partition_bytes = 3 * kSegment * sizeof(float),
                         .credit_bytes = 4 * kSegment * sizeof(float)},
                        now_);
  exchange_.SetView({2, std::vector<uint32_t>(table_.size(), 1)}, now_);
  ASSERT_EQ(sent_.size(), 4u);
  EXPECT_EQ(sent_[3].header.segment_count, 3u);
  EXPECT_EQ(sent_[3].payload.size_bytes(), 3 * kFrame);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(SameBytes(sent_[3].payload.Slice(i * kFrame, kFrame), sent_[i].payload)) << i;
  }
  EXPECT_EQ(Squares(), squares);
  Answer(sent_[3], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
}

// A push that is partitioned again may be queued behind a later one of its block.
TEST_F(CodecExchangeTest, ResidualsApplyPushesInOrderDespiteSendOrder) {
  exchange_.SetSchedule({.number = 1,
                         .partition_bytes = kSegment * sizeof(float),
                         .credit_bytes = 1},  // one partition at a time
                        now_);
  std::map<std::pair<uint64_t, uint32_t>, Lease> payloads;  // by clock and segment
  const auto take_all = [&] {
    for (size_t i = 0; i < sent_.size(); ++i) {
      payloads[{sent_[i].header.clock, sent_[i].header.first_segment}] = sent_[i].payload;
      Answer(sent_[i], MessageKind::kCommitted);
    }
    sent_.clear();
  };
  Push(2, 1);
  Push(2, 2);
  for (size_t i = 0; i < 3; ++i) {
    payloads[{1, i}] = sent_[i].payload;
    Answer(sent_[i], MessageKind::kCommitted);
  }
  ASSERT_EQ(sent_.size(), 4u) << "the first of clock 2";
  Push(2, 3);  // reuses the slot of clock 1
  sent_.clear();
  exchange_.SetView({2, std::vector<uint32_t>(table_.size(), 1)}, now_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.clock, 3u);
  take_all();
  ASSERT_EQ(payloads.size(), 9u);

  exchange_.SetCarried({}, now_);  // from the beginning again, in order
  EXPECT_EQ(Squares(), 0);
  const auto before = std::exchange(payloads, {});
  for (uint64_t clock = 1; clock < 4; ++clock) {
    Push(2, clock);
    take_all();
  }
  for (const auto& [key, payload] : payloads) {
    EXPECT_TRUE(SameBytes(payload, before.at(key))) << key.first << ' ' << key.second;
  }
}

TEST_F(CodecExchangeTest, DroppedPushIsAddedToNextPush) {
  Push(1, 1);
  for (int i = 0; i < 3; ++i) Answer(sent_[i], MessageKind::kDropped);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_TRUE(committed_[0].dropped);
  double squares = 0;
  for (uint64_t e = 1; e <= 3 * kSegment; ++e) squares += static_cast<double>(e * e);
  EXPECT_NEAR(Squares(), squares, 1e-6 * squares);
  Push(1, 2);
  ASSERT_EQ(sent_.size(), 6u);
  EXPECT_EQ(Elements(sent_[3])[2], 6.0f);
}

TEST_F(CodecExchangeTest, ResidualsThatAreCopiedAndRestoredGiveTheSameBits) {
  exchange_.SetSchedule({.number = 1,
                         .partition_bytes = kSegment * sizeof(float),
                         .credit_bytes = 1},  // the copy encodes the unsent partitions
                        now_);
  Push(1, 1);
  ASSERT_EQ(sent_.size(), 1u);
  std::vector<SegmentResidual> copy = exchange_.CopyResiduals(5);
  ASSERT_EQ(copy.size(), 3u);
  EXPECT_EQ(copy[0].segment, table_.id(1, 0));
  EXPECT_TRUE(exchange_.CopyResiduals(4).empty());
  const double squares = Squares();
  const auto take_all = [&] {
    std::vector<Lease> payloads;
    for (size_t i = 0; i < sent_.size(); ++i) {
      payloads.push_back(sent_[i].payload);
      Answer(sent_[i], MessageKind::kCommitted);
    }
    sent_.clear();
    return payloads;
  };
  take_all();
  EXPECT_EQ(Squares(), squares) << "it was encoded once";
  Push(1, 2);
  const std::vector<Lease> expected = take_all();
  Push(1, 3);  // changes the residual
  take_all();
  exchange_.RestoreResiduals(5, std::move(copy));
  EXPECT_EQ(Squares(), squares);
  Push(1, 2);
  const std::vector<Lease> again = take_all();
  ASSERT_EQ(again.size(), expected.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(SameBytes(again[i], expected[i])) << i;
}

TEST_F(CodecExchangeTest, KeepsNothingOfAPushThatIsCommitted) {
  Push(1, 1);
  std::vector<Outgoing> first = std::exchange(sent_, {});
  const void* const memory = first[0].payload.bytes().data();
  for (const Outgoing& push : first) Answer(push, MessageKind::kCommitted);
  first.clear();
  Push(1, 2);
  bool reused = false;
  for (const Outgoing& push : sent_) {
    reused |= static_cast<const void*>(push.payload.bytes().data()) == memory;
  }
  EXPECT_TRUE(reused);
}

}  // namespace
}  // namespace tug
