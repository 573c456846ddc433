// SPDX-License-Identifier: Apache-2.0
// Pushes to a lane that has deferred one for lack of memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compression/codecs/frames.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

constexpr uint64_t kPartition = kSegment * sizeof(float);

// A push has three partitions, which alternate between the two lanes.
class ExchangeAnnouncedTest : public ExchangeTest {
 protected:
  using ExchangeTest::ExchangeTest;

  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }
  // Pushes a block. Lane 0 defers its one or two partitions; lane 1 receives the others.
  void DeferAtLane0(uint32_t block, uint64_t clock = 0) {
    Push(block, clock);
    for (const Outgoing& push : Sent()) {
      Answer(push, push.to == LanePeer(0) ? MessageKind::kDeferred : MessageKind::kReceived);
    }
  }
  // Payload bytes sent to `lane`.
  static uint64_t BytesTo(uint32_t lane, const std::vector<Outgoing>& sent) {
    uint64_t bytes = 0;
    for (const Outgoing& push : sent) {
      if (push.to == LanePeer(lane)) bytes += push.payload.size_bytes();
    }
    return bytes;
  }
  void Wait(absl::Duration time) {
    now_ += time;
    exchange_.OnTick(now_);
  }
};

TEST_F(ExchangeAnnouncedTest, SendsHeadersAloneToALaneThatHasDeferredUntilItAsks) {
  DeferAtLane0(2);
  const uint64_t before = exchange_.counters().pushed_bytes;
  Push(1);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(BytesTo(0, sent), 0u);
  EXPECT_EQ(BytesTo(1, sent), 2 * kPartition);
  EXPECT_EQ(exchange_.counters().pushed_bytes, before + 2 * kPartition);
  const auto announced = std::ranges::find(sent, LanePeer(0), &Outgoing::to);
  EXPECT_EQ(announced->header.kind, MessageKind::kPush);
  EXPECT_EQ(announced->header.segment_count, 1u);

  Answer(*announced, MessageKind::kDeferred);
  EXPECT_TRUE(Sent().empty());
  Answer(*announced, MessageKind::kPushWanted);
  Answer(*announced, MessageKind::kPushWanted);  // a repeat: the push is sent again, as usual
  const std::vector<Outgoing> wanted = Sent();
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_EQ(wanted[0].payload.size_bytes(), kPartition);
  EXPECT_EQ(wanted[0].header, announced->header);
  EXPECT_EQ(wanted[0].to, LanePeer(0));
}

TEST_F(ExchangeAnnouncedTest, AnnouncedPushesUseNoCredit) {
  DeferAtLane0(2);
  Push(1);
  Push(0);
  std::vector<Outgoing> sent = Sent();
  EXPECT_EQ(sent.size(), 6u);  // three announced; three sent, of the four that the credit covers
  EXPECT_EQ(BytesTo(1, sent), 3 * kPartition);
  for (const Outgoing& push : sent) Answer(push, MessageKind::kPushWanted);
  sent = Sent();
  EXPECT_EQ(BytesTo(0, sent), kPartition) << "all the credit that is left";
}

TEST_F(ExchangeAnnouncedTest, AnnouncesForSixteenClocksAfterTheLastThatWasDeferred) {
  const auto announces = [&](uint64_t clock) {
    Push(2, clock);
    const std::vector<Outgoing> sent = Sent();
    const bool announced = BytesTo(0, sent) == 0;
    for (const Outgoing& push : sent) Answer(push, MessageKind::kCommitted);
    return announced;
  };
  EXPECT_FALSE(announces(0));
  DeferAtLane0(1, /*clock=*/1);
  for (uint64_t clock = 1; clock <= 17; ++clock) EXPECT_TRUE(announces(clock)) << clock;
  EXPECT_FALSE(announces(18));
}

TEST_F(ExchangeAnnouncedTest, AnnouncesAgainWhatNobodyAsksForEverMoreRarely) {
  DeferAtLane0(2);
  std::vector<int> seconds;
  for (int second = 1; second <= 20; ++second) {
    now_ += absl::Seconds(1);
    exchange_.OnTick(now_);
    const std::vector<Outgoing> sent = Sent();
    const auto again = std::ranges::find(sent, LanePeer(0), &Outgoing::to);
    if (again == sent.end()) continue;
    seconds.push_back(second);
    EXPECT_EQ(BytesTo(0, sent), 0u);
    if (second == 3) Answer(*again, MessageKind::kDeferred);  // the other announcements are lost
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15}));
}

TEST_F(ExchangeAnnouncedTest, WaitsNoLongerThanSixteenIntervalsToAnnounceAgain) {
  DeferAtLane0(2);
  std::vector<int> seconds;
  for (int second = 1; second <= 80; ++second) {
    Wait(absl::Seconds(1));
    const std::vector<Outgoing> sent = Sent();
    if (std::ranges::find(sent, LanePeer(0), &Outgoing::to) != sent.end()) {
      seconds.push_back(second);
    }
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15, 31, 47, 63, 79}));
}

TEST_F(ExchangeAnnouncedTest, AnnouncesWhatWasDeferredInANewViewOfTheSameLanes) {
  DeferAtLane0(2);
  std::vector<uint32_t> lane_of_segment;
  for (uint32_t id = 0; id < table_.size(); ++id) lane_of_segment.push_back(id % 2);
  exchange_.SetView({2, lane_of_segment}, now_);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(BytesTo(0, sent), 0u);
  EXPECT_EQ(sent[0].header.view, 2u);
}

TEST_F(ExchangeAnnouncedTest, KnowsNothingOfLanesThatHaveTakenOver) {
  DeferAtLane0(2);
  std::vector<uint32_t> lane_of_segment;
  for (uint32_t id = 0; id < table_.size(); ++id) lane_of_segment.push_back((id + 1) % 2);
  exchange_.SetView({2, lane_of_segment}, now_);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(BytesTo(0, sent) + BytesTo(1, sent), 3 * kPartition);
}

class ExchangeAnnouncedUpdatesTest : public ExchangeAnnouncedTest {
 protected:
  ExchangeAnnouncedUpdatesTest() : ExchangeAnnouncedTest(SyncConfig::ASP) {}
};

// If every push is an update, lanes defer early pushes, not those without memory.
TEST_F(ExchangeAnnouncedUpdatesTest, AnnouncesNothingWhereEveryPushIsAnUpdate) {
  DeferAtLane0(2);
  Push(1);
  EXPECT_EQ(BytesTo(0, Sent()), kPartition);
  Wait(absl::Seconds(1));
  EXPECT_GE(BytesTo(0, Sent()), kPartition);
}

class ExchangeAnnouncedFreedTest : public ExchangeAnnouncedTest {
 protected:
  ExchangeAnnouncedFreedTest() : ExchangeAnnouncedTest(LetsGo{}) {}
};

TEST_F(ExchangeAnnouncedFreedTest, SaysThatALaneHasNoMemoryForWhatIsAnnounced) {
  DeferAtLane0(2);
  const size_t before = deferred_.size();
  const std::weak_ptr<AlignedBuffer> gradient = Push(1);
  const std::vector<Outgoing> sent = Sent();
  const auto announced = std::ranges::find(sent, LanePeer(0), &Outgoing::to);
  Answer(*announced, MessageKind::kDeferred);
  ASSERT_EQ(deferred_.size(), before + 1);
  EXPECT_EQ(deferred_.back().block, 1u);
  EXPECT_FALSE(gradient.expired());
  Answer(*announced, MessageKind::kPushWanted);
  Answer(Sent().at(0), MessageKind::kReceived);
}

class ExchangeAnnouncedFramesTest : public ExchangeAnnouncedTest {
 public:
  ExchangeAnnouncedFramesTest() : ExchangeAnnouncedTest(Bf16WithFeedback()) {}

  struct Encoded {
    std::vector<std::byte> frames;
    std::vector<float> residual;
  };
  // Pushes block 1 at two clocks. Returns the frames that lane 0 gets at the second one, and the
  // block's residual.
  Encoded PushTwice(bool announced) {
    if (announced) DeferAtLane0(2);
    Push(1, 0);
    Push(1, 1);
    if (announced) {
      for (const Outgoing& push : Sent()) {
        if (push.to == LanePeer(0)) Answer(push, MessageKind::kPushWanted);
        if (push.to == LanePeer(1)) Answer(push, MessageKind::kReceived);
      }
    }
    Encoded encoded;
    for (const Outgoing& push : Sent()) {
      if (push.to != LanePeer(0) || push.header.clock != 1) continue;
      encoded.frames.assign(push.payload.bytes().begin(), push.payload.bytes().end());
    }
    for (const SegmentResidual& residual : exchange_.CopyResiduals(5)) {
      if (table_.segment(residual.segment).block != 1) continue;
      const std::span<const float> values = residual.values.floats();
      encoded.residual.insert(encoded.residual.end(), values.begin(), values.end());
    }
    return encoded;
  }

 private:
  void TestBody() override {}
};

// A push is encoded before the next one of its block, even if it is not sent yet.
TEST(ExchangeAnnouncedFrames, HaveTheBitsOfThoseThatAreSentAtOnce) {
  ExchangeAnnouncedFramesTest at_once, announced;
  const auto expected = at_once.PushTwice(false);
  const auto encoded = announced.PushTwice(true);
  EXPECT_FALSE(expected.frames.empty());
  EXPECT_EQ(encoded.frames, expected.frames);
  EXPECT_FALSE(expected.residual.empty());
  EXPECT_EQ(encoded.residual, expected.residual);
}

class ExchangeAnnouncedCodecTest : public ExchangeAnnouncedTest {
 protected:
  ExchangeAnnouncedCodecTest() : ExchangeAnnouncedTest(Bf16WithFeedback()) {}
};

// The lane received the partition from the virtual worker's previous worker.
TEST_F(ExchangeAnnouncedCodecTest, RepeatsWithFramesWhatWasReceivedThoughOnlyAnnounced) {
  DeferAtLane0(2);
  Push(1);
  for (const Outgoing& push : Sent()) Answer(push, MessageKind::kReceived);
  Wait(absl::Seconds(1));
  bool repeated = false;
  for (const Outgoing& push : Sent()) {
    if (push.header.block != 1 || push.to != LanePeer(0)) continue;
    repeated = true;
    EXPECT_EQ(push.header.codec, Codec::kFrames);
    EXPECT_EQ(push.payload.size_bytes(), FrameBytes(kSegment * sizeof(uint16_t)));
  }
  EXPECT_TRUE(repeated);
}

}  // namespace
}  // namespace tug
