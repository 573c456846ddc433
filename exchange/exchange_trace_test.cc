// SPDX-License-Identifier: Apache-2.0
// Trace events that an exchange records, in virtual time.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "compression/codecs/frames.h"
#include "exchange/exchange.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;
constexpr uint64_t kBytes = kSegment * sizeof(float);
constexpr int64_t kMs = 1'000'000;

SegmentTable Table() {
  BlockTable blocks;
  TensorSpec& tensor = *blocks.add_blocks()->add_tensors();
  tensor.add_shape(2 * kSegment);
  tensor.set_weight_decay(true);
  return *SegmentTable::Create(blocks, kSegment);
}

// One block of two partitions, the first on lane 0, the second on lane 1. The credit covers one.
class ExchangeTraceTest : public testing::Test {
 protected:
  ExchangeTraceTest() : table_(Table()) {}

  void Make(CommConfig::Format format) {
    ExchangeOptions options;
    options.lane_of_segment = {0, 1};
    options.comm.set_scheduler(CommConfig::BYTESCHEDULER);
    options.comm.set_partition_bytes(kBytes);
    options.comm.set_credit_bytes(kBytes + 2 * kFrameHeaderBytes);
    options.comm.set_resend_ms(1000);
    if (format == CommConfig::BF16) {
      options.comm.mutable_push_codec()->mutable_bf16();
      options.comm.mutable_push_codec()->set_blocks("*");
      options.block_names = {"all"};
    }
    options.comm.set_pull_format(format);
    options.trace = &track_;
    exchange_ = std::make_unique<Exchange>(
        options, table_,
        ExchangeSinks{.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
                      .pulled = [](BlockPulled) {},
                      .committed = [](PushCommitted) {}});
  }
  void At(int64_t ms) { time_.RunUntil(absl::UnixEpoch() + absl::Milliseconds(ms)); }
  void Push(uint64_t clock) {
    auto gradient = std::make_shared<AlignedBuffer>(2 * kBytes);
    exchange_->Push({.virtual_worker = 5,
                     .clock = clock,
                     .token_count = 1,
                     .gradient = Lease(gradient, std::as_const(*gradient).floats())},
                    time_.Now());
  }
  void Answer(size_t sent, MessageKind kind, size_t payload_bytes = 0) {
    Message message{sent_[sent].header, Lease()};
    message.header.kind = kind;
    if (kind == MessageKind::kWeights) message.header.version = message.header.clock;
    message.header.sender = sent_[sent].to;
    auto owner = std::make_shared<std::vector<float>>(payload_bytes / sizeof(float));
    message.payload = Lease(owner, std::span<const float>(*owner));
    exchange_->OnMessage(message, time_.Now());
  }
  std::vector<TraceEvent> Recorded() const {
    return {track_.events().begin(), track_.events().end()};
  }

  const SegmentTable table_;
  SimulatedTime time_;
  TraceTrack track_{"exchange", {.first = 7, .end = 8}, 100, time_};
  std::unique_ptr<Exchange> exchange_;
  std::vector<Outgoing> sent_;
  std::vector<float> weights_ = std::vector<float>(2 * kSegment);
};

TEST_F(ExchangeTraceTest, RecordsHowLongAPartitionQueuesAndTravels) {
  Make(CommConfig::FP32);
  At(10);
  Push(7);
  At(13);
  Answer(0, MessageKind::kReceived);  // the credit returns: the second one leaves
  At(20);
  Answer(0, MessageKind::kCommitted);
  Answer(1, MessageKind::kCommitted);
  const TraceEvent first{.kind = TraceKind::kQueue,
                         .segment_count = 1,
                         .virtual_worker = 5,
                         .clock = 7,
                         .bytes = kBytes,
                         .begin_ns = 10 * kMs,
                         .end_ns = 10 * kMs};
  TraceEvent first_push = first;
  first_push.kind = TraceKind::kPush;
  first_push.end_ns = 13 * kMs;
  TraceEvent second = first;
  second.first_segment = 1;
  second.peer = 1;
  second.end_ns = 13 * kMs;
  TraceEvent second_push = second;
  second_push.kind = TraceKind::kPush;
  second_push.begin_ns = 13 * kMs;
  second_push.end_ns = 20 * kMs;
  EXPECT_EQ(Recorded(), (std::vector<TraceEvent>{first, first_push, second, second_push}));
}

TEST_F(ExchangeTraceTest, RecordsPullsByTheStepThatMadeTheirVersion) {
  Make(CommConfig::FP32);
  At(10);
  exchange_->Pull({.clock = 8, .destination = weights_}, time_.Now());
  At(16);
  Answer(0, MessageKind::kWeights, kBytes);
  Answer(0, MessageKind::kWeights, kBytes);  // a repeat
  const std::vector<TraceEvent> events = Recorded();
  ASSERT_EQ(events.size(), 2u);
  const TraceEvent pull{.kind = TraceKind::kPull,
                        .segment_count = 1,
                        .clock = 7,
                        .bytes = kBytes,
                        .begin_ns = 10 * kMs,
                        .end_ns = 16 * kMs};
  EXPECT_EQ(events[0], pull);
  EXPECT_EQ(events[1].kind, TraceKind::kDecode);
}

TEST_F(ExchangeTraceTest, RecordsEncodingWhereThereIsAny) {
  Make(CommConfig::BF16);
  Push(7);
  const std::vector<TraceEvent> events = Recorded();
  ASSERT_EQ(events.size(), 4u) << "half as large: both leave";
  EXPECT_EQ(events[0].kind, TraceKind::kQueue);
  EXPECT_EQ(events[1].kind, TraceKind::kEncode);
  EXPECT_EQ(events[1].bytes, FrameBytes(kBytes / 2));
}

TEST_F(ExchangeTraceTest, RecordsNothingOfOtherSteps) {
  Make(CommConfig::BF16);
  Push(6);
  Push(8);
  for (size_t i = 0; i < sent_.size(); ++i) Answer(i, MessageKind::kCommitted);
  exchange_->Pull({.clock = 0, .destination = weights_}, time_.Now());
  Answer(sent_.size() - 1, MessageKind::kWeights, kBytes / 2);
  EXPECT_TRUE(Recorded().empty());
}

}  // namespace
}  // namespace tug
