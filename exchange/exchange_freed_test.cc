// SPDX-License-Identifier: Apache-2.0
// A worker that frees gradients once lanes have received them.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

// Tests one push of three partitions.
class ExchangeFreedTest : public ExchangeTest {
 protected:
  ExchangeFreedTest() : ExchangeTest(LetsGo{}) {}
  explicit ExchangeFreedTest(const PushCodecConfig& codec) : ExchangeTest(LetsGo{codec}) {}

  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }
  // Pushes, answers all partitions except the last with `kind`, and returns what was sent.
  std::vector<Outgoing> PushAndAnswer(MessageKind kind) {
    gradient_ = Push(1);
    std::vector<Outgoing> first = Sent();
    EXPECT_EQ(first.size(), 3u);
    for (Outgoing& push : first) push.payload = Lease();  // it has arrived
    for (size_t p = 0; p + 1 < first.size(); ++p) Answer(first[p], kind);
    return first;
  }
  void Wait(absl::Duration time) {
    now_ += time;
    exchange_.OnTick(now_);
  }

  std::weak_ptr<AlignedBuffer> gradient_;
};

TEST_F(ExchangeFreedTest, LetsGoOfAGradientWhenAllOfItIsReceivedOrCommitted) {
  const std::vector<Outgoing> first = PushAndAnswer(MessageKind::kReceived);
  EXPECT_FALSE(gradient_.expired());
  EXPECT_TRUE(received_.empty());
  Answer(first[2], MessageKind::kCommitted);
  EXPECT_TRUE(gradient_.expired());
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0].block, 1u);
  EXPECT_EQ(received_[0].virtual_worker, 5u);
  EXPECT_TRUE(committed_.empty());
  Answer(first[0], MessageKind::kCommitted);
  Answer(first[1], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_FALSE(committed_[0].lost);
  EXPECT_EQ(received_.size(), 1u) << "it is said once";
}

TEST_F(ExchangeFreedTest, AsksForWhatWasReceivedAndSendsAgainWhatWasNot) {
  const std::vector<Outgoing> first = PushAndAnswer(MessageKind::kReceived);
  Wait(absl::Seconds(1));
  const std::vector<Outgoing> again = Sent();
  ASSERT_EQ(again.size(), 3u);
  for (size_t p = 0; p < 3; ++p) {
    const bool received = p < 2;
    WireHeader expected = first[p].header;
    expected.kind = received ? MessageKind::kPushAsked : MessageKind::kPush;
    EXPECT_EQ(again[p].header, expected);
    EXPECT_EQ(again[p].payload.size_bytes(), received ? 0 : kSegment * sizeof(float));
    EXPECT_EQ(again[p].to, first[p].to);
  }
  EXPECT_EQ(exchange_.counters().pushed_bytes, 4 * kSegment * sizeof(float));
  // The replies that were lost before.
  for (const Outgoing& asked : again) Answer(asked, MessageKind::kCommitted);
  EXPECT_EQ(committed_.size(), 1u);
  Wait(absl::Hours(1));
  EXPECT_TRUE(Sent().empty());
}

TEST_F(ExchangeFreedTest, HasEverMorePatienceWithALaneThatItAsks) {
  PushAndAnswer(MessageKind::kReceived);
  Wait(absl::Seconds(1));
  EXPECT_EQ(Sent().size(), 3u);
  Wait(absl::Seconds(1));
  EXPECT_TRUE(Sent().empty()) << "twice as long";
  Wait(absl::Seconds(1));
  EXPECT_EQ(Sent().size(), 3u);
}

TEST_F(ExchangeFreedTest, AsksAtOnceInANewView) {
  PushAndAnswer(MessageKind::kReceived);
  std::vector<uint32_t> lane_of_segment;
  for (uint32_t id = 0; id < table_.size(); ++id) lane_of_segment.push_back(id % 2);
  exchange_.SetView({2, lane_of_segment}, now_);
  const std::vector<Outgoing> again = Sent();
  ASSERT_EQ(again.size(), 3u);
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(again[p].header.view, 2u);
    EXPECT_EQ(again[p].header.kind, p < 2 ? MessageKind::kPushAsked : MessageKind::kPush);
  }
}

TEST_F(ExchangeFreedTest, KeepsWhatALaneHasNoMemoryFor) {
  const std::vector<Outgoing> first = PushAndAnswer(MessageKind::kReceived);
  Answer(first[2], MessageKind::kDeferred);
  ASSERT_EQ(deferred_.size(), 1u);
  EXPECT_EQ(deferred_[0].block, 1u);
  EXPECT_FALSE(gradient_.expired());
  Answer(first[2], MessageKind::kPushWanted);
  const std::vector<Outgoing> again = Sent();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].payload.size_bytes(), kSegment * sizeof(float));
  Answer(again[0], MessageKind::kReceived);
  EXPECT_EQ(received_.size(), 1u);
  // A late repeat.
  Answer(first[2], MessageKind::kPushWanted);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(ExchangeFreedTest, APushThatALaneHasForgottenIsLost) {
  const std::vector<Outgoing> first = PushAndAnswer(MessageKind::kReceived);
  Answer(first[2], MessageKind::kReceived);
  Wait(absl::Seconds(1));
  const std::vector<Outgoing> asked = Sent();
  ASSERT_EQ(asked.size(), 3u);
  Answer(asked[0], MessageKind::kDropped);
  Answer(asked[1], MessageKind::kCommitted);
  Answer(asked[2], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_TRUE(committed_[0].lost);
}

TEST_F(ExchangeFreedTest, APushThatWasLetGoOfIsLostWhenSegmentsMove) {
  PushAndAnswer(MessageKind::kReceived);
  const std::weak_ptr<AlignedBuffer> whole = Push(0);
  Sent();
  exchange_.SetView({2, std::vector<uint32_t>(table_.size(), 7)}, now_);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_EQ(committed_[0].block, 1u);
  EXPECT_TRUE(committed_[0].lost);
  EXPECT_EQ(received_.size(), 1u);
  EXPECT_TRUE(gradient_.expired());
  EXPECT_FALSE(whole.expired());
  const std::vector<Outgoing> again = Sent();
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].header.block, 0u);
  EXPECT_EQ(again[0].to, LanePeer(7));
  EXPECT_EQ(again[0].payload.size_bytes(), kSegment * sizeof(float));
}

TEST_F(ExchangeFreedTest, CancelledPushIsReleasedAndNotLost) {
  PushAndAnswer(MessageKind::kReceived);
  exchange_.SetCarried({{6}}, now_);
  EXPECT_EQ(received_.size(), 1u);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_FALSE(committed_[0].lost);
  EXPECT_TRUE(gradient_.expired());
}

class ExchangeFreedFramesTest : public ExchangeFreedTest {
 protected:
  ExchangeFreedFramesTest() : ExchangeFreedTest(Bf16WithFeedback()) {}
};

// With two open pushes of a block, the later one needs only the residual of the earlier one.
TEST_F(ExchangeFreedFramesTest, EncodesWhatItHasLetGoOfOnce) {
  std::vector<Outgoing> first = PushAndAnswer(MessageKind::kReceived);
  Answer(first[2], MessageKind::kReceived);
  EXPECT_TRUE(gradient_.expired());
  const std::vector<SegmentResidual> residuals = exchange_.CopyResiduals(5);
  Push(1, /*clock=*/1);
  EXPECT_EQ(Sent().size(), 3u);
  Wait(absl::Seconds(1));
  const std::vector<Outgoing> again = Sent();
  ASSERT_EQ(again.size(), 6u);
  EXPECT_EQ(again[0].header.kind, MessageKind::kPushAsked);
  EXPECT_EQ(again[0].header.codec, Codec::kFrames);
  EXPECT_EQ(again[3].header.kind, MessageKind::kPush);
  EXPECT_FALSE(residuals.empty());
}

}  // namespace
}  // namespace tug
