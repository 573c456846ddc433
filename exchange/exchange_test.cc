#include "exchange/exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;

SegmentTable Table() {
  BlockTable blocks;
  for (int b = 0; b < 3; ++b) blocks.add_blocks()->add_tensors()->add_shape(3 * kSegment);
  return *SegmentTable::Create(blocks, kSegment);
}

// An exchange over two lanes, segments dealt round, one segment a partition.
class ExchangeTest : public testing::Test {
 protected:
  explicit ExchangeTest(CommConfig::Scheduler scheduler = CommConfig::PRIORITY)
      : table_(Table()), exchange_(Options(scheduler), table_, Sinks()) {}

  ExchangeOptions Options(CommConfig::Scheduler scheduler) {
    ExchangeOptions options;
    options.job = 9;
    options.timeline = 1;
    options.view = 1;
    for (uint32_t id = 0; id < table_.size(); ++id) options.lane_of_segment.push_back(id % 2);
    options.comm.set_partition_bytes(kSegment * sizeof(float));
    options.comm.set_credit_bytes(4 * kSegment * sizeof(float));
    options.comm.set_scheduler(scheduler);
    options.comm.set_resend_ms(1000);
    return options;
  }
  ExchangeSinks Sinks() {
    return {.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
            .pulled = [this](BlockPulled e) { pulled_.push_back(e); },
            .committed = [this](PushCommitted e) { committed_.push_back(e); }};
  }

  void Push(uint32_t block, uint64_t clock = 0) {
    auto gradient = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    exchange_.Push({block, 5, 1, clock, 100, Lease(gradient, std::as_const(*gradient).floats())},
                   now_);
  }
  // The lane's answer to a message that was sent.
  void Answer(const Outgoing& to, MessageKind kind, std::vector<float> weights = {}) {
    Message message{to.header, Lease()};
    message.header.kind = kind;
    message.header.sender = to.to;
    if (!weights.empty()) {
      auto owner = std::make_shared<std::vector<float>>(std::move(weights));
      message.payload = Lease(owner, std::span<const float>(*owner));
    }
    exchange_.OnMessage(message, now_);
  }

  SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Outgoing> sent_;
  std::vector<BlockPulled> pulled_;
  std::vector<PushCommitted> committed_;
  Exchange exchange_;
};

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
  Answer(sent_[0], MessageKind::kReceived);  // arrives late: gives no credit twice
  EXPECT_EQ(sent_.size(), 5u);
}

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

}  // namespace
}  // namespace tug
