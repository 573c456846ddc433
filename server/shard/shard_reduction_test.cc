// SPDX-License-Identifier: Apache-2.0
// Shards that all-reduce their sums (`exchange: ALL_REDUCE`), compared with one that sums all
// pushes itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "blocks/view_lanes.h"
#include "server/shard/shard.h"

namespace tug {
namespace {

constexpr uint64_t kElements = 1024;
constexpr uint32_t kVirtualWorkers = 4;
constexpr uint32_t kLanes[] = {kMaxLanesPerServer,
                               2 * kMaxLanesPerServer};  // lanes of servers 1 and 2
constexpr uint64_t kClocks = 3;

SegmentTable Table() {
  BlockTable blocks;
  for (const uint64_t elements : {2 * kElements, 3 * kElements}) {
    TensorSpec* tensor = blocks.add_blocks()->add_tensors();
    tensor->add_shape(elements);
    tensor->set_weight_decay(true);
  }
  return *SegmentTable::Create(blocks, kElements);
}

// A shard with all segments, its weights at each version, and its notices.
struct Server {
  std::unique_ptr<Shard> shard;
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>> weights;  // bits of the weights
  std::vector<std::string> notices;
  uint32_t committed = 0;
};

class ShardReductionTest : public ::testing::TestWithParam<OptimizerConfig::Clip> {
 protected:
  ShardReductionTest() {
    Open(alone_, kLanes[0], std::nullopt, {true, true, true, true});
    OpenReducing(CollectiveConfig::FP32);
  }

  void OpenReducing(CollectiveConfig::Format format) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      LaneReduction::Options reduction;
      reduction.collective.set_format(format);
      reduction.group.peers = {LanePeer(kLanes[0]), LanePeer(kLanes[1])};
      reduction.group.rank = rank;
      reduction.group.job = 9;
      reduction.group.group = 1;
      Open(reducing_[rank], kLanes[rank], reduction, {rank == 0, rank == 0, rank == 1, rank == 1});
    }
  }

  void Open(Server& server, uint32_t lane, std::optional<LaneReduction::Options> reduction,
            std::vector<bool> live) {
    ShardOptions options;
    options.lane = lane;
    options.job = 9;
    options.timeline = 1;
    options.view = 1;
    options.virtual_workers = kVirtualWorkers;
    options.optimizer.set_learning_rate(0.1);
    options.optimizer.set_min_learning_rate(0.1);
    options.optimizer.set_decay_steps(10);
    options.optimizer.set_clip(GetParam());
    options.optimizer.set_clip_norm(0.01);
    options.optimizer.mutable_adamw()->set_beta1(0.9);
    options.optimizer.mutable_adamw()->set_beta2(0.99);
    options.optimizer.mutable_adamw()->set_epsilon(1e-8);
    options.lane_of_segment.assign(table_.size(), lane);
    options.block_names = {"first", "second"};
    options.checkpoint_interval = 1;
    options.reduction = std::move(reduction);
    ShardSinks sinks;
    sinks.send = [this, &server, lane](Outgoing m) {
      if (m.header.kind == MessageKind::kCommitted) ++server.committed;
      if (!IsWorker(m.to)) packets_.emplace_back(LanePeer(lane), std::move(m));
    };
    sinks.snapshot = [&server](const SegmentSnapshot& s) {
      std::vector<uint32_t>& bits = server.weights[{s.version, s.segment}];
      for (const float w : s.weights.floats()) bits.push_back(std::bit_cast<uint32_t>(w));
    };
    sinks.notice = [&server](const ShardNotice& n) { server.notices.push_back(n.text); };
    sinks.wake = [] {};
    server.shard = std::make_unique<Shard>(options, table_, std::move(sinks));
    std::mt19937 random(7);
    for (uint32_t id = 0; id < table_.size(); ++id) {
      for (float& w : server.shard->weights(id)) w = static_cast<float>(random() % 1000) / 1000.0f;
    }
    server.shard->SetView(1, LiveSet(std::move(live)), now_);
  }

  void Push(Server& server, uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    auto gradient = std::make_shared<std::vector<float>>(table_.block_elements(block));
    std::mt19937 random(static_cast<uint32_t>(1000 * clock + 10 * virtual_worker + block));
    std::normal_distribution<float> normal;
    for (float& g : *gradient) g = normal(random);
    if (bad_ == std::pair(clock, virtual_worker) && block == 1) {
      gradient->at(kElements + 3) = bad_value_;
    }
    WireHeader header;
    header.kind = MessageKind::kPush;
    header.job = 9;
    header.timeline = 1;
    header.view = 1;
    header.sender = WorkerPeer(20 + virtual_worker);
    header.block = block;
    header.segment_count = table_.segments_in_block(block);
    header.virtual_worker = virtual_worker;
    header.virtual_worker_count = 1;
    header.clock = clock;
    header.token_count = 50 + virtual_worker;
    header.payload_bytes = gradient->size() * sizeof(float);
    server.shard->OnMessage(
        {header, Lease(gradient, std::span<const float>(*gradient)), Home::kSender}, now_);
  }

  void Reduce() {
    bool busy = true;
    while (busy) {
      busy = !packets_.empty();
      if (busy) {
        auto [from, packet] = std::move(packets_.front());
        packets_.pop_front();
        Message message{packet.header, packet.payload, Home::kSender};
        message.header.sender = from;
        reducing_[packet.to == LanePeer(kLanes[0]) ? 0 : 1].shard->OnMessage(std::move(message),
                                                                             now_);
      }
      for (Server& server : reducing_) {
        LaneReduction& reduction = *server.shard->reduction();
        while (reduction.Work() || reduction.HandBackOne(now_)) busy = true;
      }
    }
  }

  void RunClocks() {
    for (uint64_t clock = 0; clock < kClocks; ++clock) {
      for (uint32_t vw = 0; vw < kVirtualWorkers; ++vw) {
        for (const uint32_t block : {1u, 0u}) {
          Push(alone_, block, vw, clock);
          Push(reducing_[vw / 2], block, vw, clock);
          Push(reducing_[vw / 2], block, vw, clock);  // a repeat
        }
      }
      Reduce();
    }
  }

  const SegmentTable table_ = Table();
  const absl::Time now_ = absl::UnixEpoch();
  std::optional<std::pair<uint64_t, uint32_t>> bad_;  // clock and virtual worker
  float bad_value_ = std::numeric_limits<float>::quiet_NaN();
  std::deque<std::pair<PeerId, Outgoing>> packets_;
  Server alone_;
  Server reducing_[2];
};

TEST_P(ShardReductionTest, TwoHaveTheBitsOfOneThatSumsAllPushes) {
  RunClocks();
  ASSERT_EQ(alone_.weights.size(), kClocks * table_.size());
  for (const Server& server : reducing_) {
    EXPECT_EQ(server.weights, alone_.weights);
    EXPECT_EQ(server.committed, 2 * 2 * kClocks);
    EXPECT_EQ(server.shard->counters().malformed, 0u);
    EXPECT_TRUE(server.notices.empty()) << server.notices.front();
  }
}

TEST_P(ShardReductionTest, AllSkipWhatIsNotFiniteAndSayWhose) {
  bad_ = {1, 2};
  RunClocks();
  ASSERT_EQ(alone_.notices.size(), 1u);
  EXPECT_NE(alone_.notices[0].find("from virtual worker 2"), std::string::npos)
      << alone_.notices[0];
  for (const Server& server : reducing_) {
    EXPECT_EQ(server.weights, alone_.weights);
    EXPECT_EQ(server.notices, alone_.notices);
  }
}

TEST_P(ShardReductionTest, ASumThatOverflowsFp16AdvisesBf16) {
  bad_ = {1, 2};
  bad_value_ = 1e5f;  // finite, but overflows FP16
  OpenReducing(CollectiveConfig::FP16);
  RunClocks();
  EXPECT_TRUE(alone_.notices.empty());
  for (const Server& server : reducing_) {
    ASSERT_EQ(server.notices.size(), 1u);
    EXPECT_NE(server.notices[0].find("summed over all virtual workers"), std::string::npos);
    EXPECT_NE(server.notices[0].find("set collective.format=BF16"), std::string::npos)
        << server.notices[0];
    EXPECT_EQ(server.notices[0].find("learning rate"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Clips, ShardReductionTest,
                         ::testing::Values(OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK,
                                           OptimizerConfig::GLOBAL),
                         [](const auto& info) { return OptimizerConfig::Clip_Name(info.param); });

}  // namespace
}  // namespace tug
