// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_EXCHANGE_TEST_SUPPORT_H_
#define TUG_EXCHANGE_EXCHANGE_TEST_SUPPORT_H_

// Fixture for tests of exchange.h: a worker's exchange; the test acts as the lanes.

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "exchange/exchange.h"
#include "kernels/bf16.h"

namespace tug {

inline constexpr uint64_t kSegment = 4096;

inline SegmentTable ExchangeTestTable() {
  BlockTable blocks;
  for (int b = 0; b < 3; ++b) {
    TensorSpec& tensor = *blocks.add_blocks()->add_tensors();
    tensor.add_shape(3 * kSegment);
    tensor.set_weight_decay(true);
  }
  return *SegmentTable::Create(blocks, kSegment);
}

// bf16 with error feedback for all tensors.
inline PushCodecConfig Bf16WithFeedback() {
  PushCodecConfig codec;
  codec.mutable_bf16();
  codec.set_error_feedback(true);
  codec.set_min_elements(0);
  codec.set_vectors(true);
  codec.set_blocks("*");
  return codec;
}

// An exchange over `lanes` lanes. Segments are assigned round-robin, one segment per partition.
class ExchangeTest : public testing::Test {
 protected:
  explicit ExchangeTest(CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER,
                        CommConfig::Format format = CommConfig::FP32, uint32_t lanes = 2)
      : table_(ExchangeTestTable()),
        exchange_(Options(scheduler, format, lanes), table_, Sinks()) {}
  // With a pull format; with a codec of pushes.
  explicit ExchangeTest(CommConfig::Format format)
      : table_(ExchangeTestTable()),
        exchange_(Options(CommConfig::BYTESCHEDULER, format, 2), table_, Sinks()) {}
  explicit ExchangeTest(const PushCodecConfig& codec)
      : table_(ExchangeTestTable()), exchange_(CodecOptions(codec), table_, Sinks()) {}
  // With a sync policy.
  explicit ExchangeTest(SyncConfig::Policy policy)
      : table_(ExchangeTestTable()), exchange_(SyncOptions(policy), table_, Sinks()) {}

  // A worker that frees gradients, with or without a codec.
  struct LetsGo {
    PushCodecConfig codec = {};
  };
  explicit ExchangeTest(const LetsGo& lets_go)
      : table_(ExchangeTestTable()), exchange_(LetsGoOptions(lets_go.codec), table_, Sinks()) {}

  ExchangeOptions Options(CommConfig::Scheduler scheduler, CommConfig::Format format,
                          uint32_t lanes) {
    ExchangeOptions options;
    options.job = 9;
    options.timeline = 1;
    options.view = 1;
    for (uint32_t id = 0; id < table_.size(); ++id) {
      options.lane_of_segment.push_back(id % lanes);
    }
    options.comm.set_partition_bytes(kSegment * sizeof(float));
    options.comm.set_credit_bytes(4 * kSegment * sizeof(float));
    options.comm.set_scheduler(scheduler);
    options.comm.set_resend_ms(1000);
    options.comm.set_pull_format(format);
    return options;
  }
  ExchangeOptions CodecOptions(const PushCodecConfig& codec) {
    ExchangeOptions options = Options(CommConfig::BYTESCHEDULER, CommConfig::FP32, 2);
    *options.comm.mutable_push_codec() = codec;
    options.block_names = {"first", "second", "third"};
    options.seed = 3;
    return options;
  }
  ExchangeOptions SyncOptions(SyncConfig::Policy policy) {
    ExchangeOptions options = Options(CommConfig::BYTESCHEDULER, CommConfig::FP32, 2);
    options.mode = SyncModeOf(policy);
    return options;
  }
  ExchangeOptions LetsGoOptions(const PushCodecConfig& codec) {
    ExchangeOptions options = CodecOptions(codec);
    options.frees_gradients = true;
    return options;
  }
  ExchangeSinks Sinks() {
    return {.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
            .pulled = [this](BlockPulled e) { pulled_.push_back(e); },
            .committed = [this](PushCommitted e) { committed_.push_back(e); },
            .received = [this](PushReceived e) { received_.push_back(e); },
            .deferred = [this](PushDeferred e) { deferred_.push_back(e); }};
  }

  // Pushes a gradient whose element e is e + 1, or 0 outside of `runs` unless that is empty.
  // Returns a pointer that expires once the gradient has no reader.
  std::weak_ptr<AlignedBuffer> Push(uint32_t block, uint64_t clock = 0,
                                    const ElementRuns& runs = {}) {
    auto gradient = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    for (const ElementRun& run : runs.empty() ? ElementRuns{{0, 3 * kSegment}} : runs) {
      for (uint32_t e = run.begin; e < run.end; ++e) gradient->floats()[e] = 1.0f + e;
    }
    exchange_.Push(
        {block, 5, 1, clock, 100, Lease(gradient, std::as_const(*gradient).floats()), runs}, now_);
    return gradient;
  }
  // Answers a pull from `memory`, which is shared and begins with the block's first element.
  void AnswerInPlace(const Outgoing& to, const Lease& memory, Home home = Home::kSender) {
    Message message{to.header, Lease(), home};
    message.header.kind = MessageKind::kWeights;
    message.header.version = to.header.clock;
    message.header.sender = to.to;
    const size_t size_bytes =
        kSegment * (to.header.codec == Codec::kBf16 ? sizeof(kernels::Bf16) : sizeof(float));
    message.payload = memory.Slice(to.header.first_segment * size_bytes, size_bytes);
    exchange_.OnMessage(message, now_);
  }
  static Lease SharedWeights() {
    auto memory = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    std::iota(memory->floats().begin(), memory->floats().end(), 0.5f);
    return Lease(memory, std::as_const(*memory).floats());
  }
  // Answers a message as the lane. Weights get the version in the header of the pull or, if that is
  // 0, its clock.
  void Answer(const Outgoing& to, MessageKind kind, std::vector<float> weights = {}) {
    Message message{to.header, Lease()};
    message.header.kind = kind;
    message.header.sender = to.to;
    const bool says_none = kind == MessageKind::kWeights && to.header.version == 0;
    if (says_none) message.header.version = to.header.clock;
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
  std::vector<PushReceived> received_;
  std::vector<PushDeferred> deferred_;
  std::vector<float> destination_ = std::vector<float>(3 * kSegment, -1.0f);
  Exchange exchange_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_EXCHANGE_TEST_SUPPORT_H_
