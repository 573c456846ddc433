// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_TEST_SUPPORT_H_
#define TUG_SERVER_SHARD_SHARD_TEST_SUPPORT_H_

// A single lane, for tests of shard.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {

inline constexpr uint64_t kSegment = 4096;
inline constexpr uint32_t kLane = 300;
inline constexpr uint32_t kOtherLane = 301;
inline constexpr PeerId kWorker = WorkerPeer(7);

inline SegmentTable ShardTestTable() {
  BlockTable blocks;
  for (int b = 0; b < 2; ++b) {
    TensorSpec* tensor = blocks.add_blocks()->add_tensors();
    tensor->add_shape(3 * kSegment);
    tensor->set_weight_decay(true);
  }
  return *SegmentTable::Create(blocks, kSegment);
}

// A lane that owns all but the last segment of each block, which the other lane owns; two virtual
// workers.
class ShardTest : public testing::Test {
 protected:
  explicit ShardTest(OptimizerConfig::Clip clip = OptimizerConfig::OFF)
      : ShardTest(Options(clip)) {}
  explicit ShardTest(const ShardOptions& options)
      : table_(ShardTestTable()),
        shard_(options, table_,
               {.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
                .snapshot =
                    [this](const SegmentSnapshot& s) {
                      snapshots_.push_back(s.segment);
                      snapshot_versions_.push_back(s.version);
                      snapshot_clocks_.emplace_back(s.clocks.begin(), s.clocks.end());
                      const std::span<const float> weights = s.weights.floats();
                      snapshot_weights_.emplace_back(
                          s.weights, std::vector<float>(weights.begin(), weights.end()));
                    },
                .notice = [this](ShardNotice n) { notices_.push_back(std::move(n)); },
                .shares_memory = [this](PeerId) { return shares_memory_; },
                .record = [this](const OrderRecord& r) { records_.push_back(r); }}) {}

  static ShardOptions Options(OptimizerConfig::Clip clip) {
    ShardOptions options;
    options.lane = kLane;
    options.job = 9;
    options.timeline = 1;
    options.view = 4;
    options.virtual_workers = 2;
    options.optimizer.set_learning_rate(0.1);
    options.optimizer.set_min_learning_rate(0.1);
    options.optimizer.set_decay_steps(10);
    options.optimizer.set_clip(clip);
    options.optimizer.set_clip_norm(1.0);
    options.optimizer.mutable_adamw()->set_beta1(0.9);
    options.optimizer.mutable_adamw()->set_beta2(0.99);
    options.optimizer.mutable_adamw()->set_epsilon(1e-8);
    options.lane_of_segment = {kLane, kLane, kOtherLane, kLane, kLane, kOtherLane};
    options.block_names = {"first", "second"};
    options.checkpoint_interval = 2;
    options.resend_after = absl::Seconds(1);
    return options;
  }

  static WireHeader Header(MessageKind kind, uint32_t block, PeerId sender = kWorker) {
    WireHeader header;
    header.kind = kind;
    header.job = 9;
    header.timeline = 1;
    header.view = 4;
    header.block = block;
    header.segment_count = 2;
    header.sender = sender;
    return header;
  }
  static WireHeader PushHeader(uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    WireHeader header = Header(MessageKind::kPush, block);
    header.virtual_worker = virtual_worker;
    header.virtual_worker_count = 1;
    header.clock = clock;
    header.token_count = 50;
    return header;
  }
  void Deliver(WireHeader header, std::vector<float> payload = {}) {
    auto owner = std::make_shared<std::vector<float>>(std::move(payload));
    header.payload_bytes = owner->size() * sizeof(float);
    shard_.OnMessage({header, Lease(owner, std::span<const float>(*owner))}, now_);
  }
  // Encodes the segments with the codecs `ids`, in rotation.
  void DeliverFrames(WireHeader header, const std::vector<float>& gradient,
                     const std::vector<uint8_t>& ids, Home home = Home::kReceiver) {
    Lease payload = LeaseOf(EncodeFrames(gradient, kSegment, ids));
    header.codec = Codec::kFrames;
    header.payload_bytes = payload.size_bytes();
    shard_.OnMessage({header, std::move(payload), home}, now_);
  }
  void Push(uint32_t block, uint32_t virtual_worker, uint64_t clock, float value = 1.0f) {
    Deliver(PushHeader(block, virtual_worker, clock), std::vector<float>(2 * kSegment, value));
  }
  void Pull(uint32_t block, uint64_t clock, PeerId sender = kWorker) {
    WireHeader header = Header(MessageKind::kPull, block, sender);
    header.clock = clock;
    Deliver(header);
  }
  size_t Count(MessageKind kind) const {
    return static_cast<size_t>(std::count_if(
        sent_.begin(), sent_.end(), [&](const Outgoing& m) { return m.header.kind == kind; }));
  }

  SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Outgoing> sent_;
  std::vector<uint32_t> snapshots_;
  std::vector<uint64_t> snapshot_versions_;
  std::vector<std::vector<uint64_t>> snapshot_clocks_;
  std::vector<OrderRecord> records_;
  std::vector<std::pair<Lease, std::vector<float>>> snapshot_weights_;  // with a copy taken then
  std::vector<ShardNotice> notices_;
  bool shares_memory_ = false;  // workers and lane
  Shard shard_;
};

// A lane whose pushes are updates by themselves (SSP).
class UpdateShardTest : public ShardTest {
 protected:
  static constexpr uint64_t kTokens = 50;  // tokens of ShardTest's pushes

  static ShardOptions SspOptions(ShardOptions options) {
    options.optimizer.set_algorithm(OptimizerConfig::SGD);
    options.optimizer.set_schedule(OptimizerConfig::CONSTANT);
    options.optimizer.set_learning_rate(1);
    options.sync.set_policy(SyncConfig::SSP);
    options.sync.set_staleness(1);
    options.sync.set_staleness_scaling(SyncConfig::NONE);
    return options;
  }

  explicit UpdateShardTest(
      const ShardOptions& options = SspOptions(Options(OptimizerConfig::GLOBAL)))
      : ShardTest(options) {}

  // Pushes a gradient with mean `mean`, computed with weights of `version`.
  void PushMean(uint32_t block, uint32_t virtual_worker, uint64_t clock, uint64_t version,
                float mean = 1.0f) {
    WireHeader header = PushHeader(block, virtual_worker, clock);
    header.version = version;
    Deliver(header, std::vector<float>(2 * kSegment, mean * kTokens));
  }
  void PullFor(uint32_t block, uint32_t virtual_worker, uint64_t clock, Want want = Want::kAtLeast,
               uint32_t first_segment = 0, uint32_t segments = 2) {
    WireHeader header = PullOf(WorkerPeer(virtual_worker), block, virtual_worker, clock);
    header.want = want;
    header.first_segment = first_segment;
    header.segment_count = segments;
    Deliver(header);
  }
  void PullBy(PeerId sender, uint32_t view, uint32_t block, uint32_t virtual_worker,
              uint64_t clock) {
    WireHeader header = PullOf(sender, block, virtual_worker, clock);
    header.view = view;
    Deliver(header);
  }
  // A pull of both segments, of this clock or later.
  WireHeader PullOf(PeerId sender, uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    WireHeader header = Header(MessageKind::kPull, block, sender);
    header.view = 4;
    header.clock = clock;
    header.virtual_worker = virtual_worker;
    header.virtual_worker_count = 1;
    header.want = Want::kAtLeast;
    header.segment_count = 2;
    return header;
  }
  float Weight(uint32_t segment) { return shard_.weights(segment)[0]; }
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_TEST_SUPPORT_H_
