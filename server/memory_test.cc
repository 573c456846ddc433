// SPDX-License-Identifier: Apache-2.0
// A lane holds as many bytes as memory.h predicts.
#include "server/segments/memory.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "blocks/weights_payload.h"
#include "gtest/gtest.h"
#include "server/segments/lane_memory.h"
#include "server/shard/shard.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;
constexpr uint32_t kSegments = 6;  // in two blocks
constexpr uint64_t kParameters = kSegment * kSegments;
constexpr uint32_t kVirtualWorkers = 2;

SegmentTable Table() {
  BlockTable blocks;
  for (uint32_t b = 0; b < 2; ++b) {
    blocks.add_blocks()->add_tensors()->add_shape(kSegments / 2 * kSegment);
  }
  return *SegmentTable::Create(blocks, kSegment);
}

JobConfig Job(CommConfig::Format format, SyncConfig::Policy policy) {
  JobConfig config;
  config.mutable_cluster()->set_virtual_workers(kVirtualWorkers);
  config.mutable_comm()->set_pull_format(format);
  config.mutable_comm()->set_pull_density(0.1);
  config.mutable_comm()->set_segment_elements(kSegment);
  config.mutable_sync()->set_policy(policy);
  config.mutable_sync()->set_staleness(1);
  OptimizerConfig& optimizer = *config.mutable_optimizer();
  optimizer.set_algorithm(OptimizerConfig::ADAMW);
  optimizer.set_learning_rate(0.1);
  optimizer.set_min_learning_rate(0.1);
  optimizer.set_decay_steps(10);
  optimizer.set_clip(OptimizerConfig::GLOBAL);
  optimizer.set_clip_norm(1.0);
  optimizer.mutable_adamw()->set_beta1(0.9);
  optimizer.mutable_adamw()->set_beta2(0.99);
  optimizer.mutable_adamw()->set_epsilon(1e-8);
  return config;
}

// Two servers with one lane each; the first owns `own` segments, the second the others.
View ViewOf(uint32_t own) {
  View view;
  for (uint32_t server = 1; server <= 2; ++server) view.add_lanes()->set_server_node_id(server);
  for (uint32_t id = 0; id < kSegments; ++id) view.add_lane_of_segment(id < own ? 0 : 1);
  return view;
}

// Peak memory of a lane that owns all segments, after a few clocks.
HeldMemory Measured(const JobConfig& config) {
  const SegmentTable table = Table();
  ShardOptions options;
  options.virtual_workers = kVirtualWorkers;
  options.optimizer = config.optimizer();
  options.sync = config.sync();
  options.pull_format = config.comm().pull_format();
  options.pull_density = config.comm().pull_density();
  options.lane_of_segment.assign(kSegments, options.lane);
  options.block_names = {"first", "second"};
  Shard shard(options, table,
              {.send = [](Outgoing) {},
               .snapshot = [](const SegmentSnapshot&) {},
               .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
  for (uint64_t clock = 0; clock < 4; ++clock) {
    for (uint32_t vw = 0; vw < kVirtualWorkers; ++vw) {
      for (uint32_t id = 0; id < kSegments; ++id) {
        const auto gradient = std::make_shared<std::vector<float>>(kSegment, 1.0f);
        Message push;
        push.header.kind = MessageKind::kPush;
        push.header.block = id / 3;
        push.header.first_segment = id % 3;
        push.header.segment_count = 1;
        push.header.virtual_worker = vw;
        push.header.virtual_worker_count = 1;
        push.header.token_count = 1;
        push.header.clock = clock;
        push.header.sender = WorkerPeer(vw);
        push.payload = Lease(gradient, std::span<const float>(*gradient));
        shard.OnMessage(std::move(push), absl::UnixEpoch());
      }
    }
  }
  EXPECT_GE(shard.version(0), 4u);
  return {.weights = options.memory->weights().most(),
          .optimizer = options.memory->state().most(),
          .sums = shard.peak_held_bytes()};
}

TEST(HeldMemory, IsWhatTheFormulaSaysInEveryFormatOfPulls) {
  for (const auto format :
       {CommConfig::FP32, CommConfig::BF16, CommConfig::INT8, CommConfig::CHANGES}) {
    SCOPED_TRACE(CommConfig::Format_Name(format));
    const JobConfig config = Job(format, SyncConfig::BSP);
    const HeldMemory predicted = PredictLaneHeld(config, Table(), ViewOf(kSegments), 0);
    const HeldMemory measured = Measured(config);
    EXPECT_EQ(measured.weights, predicted.weights);
    EXPECT_EQ(measured.optimizer, predicted.optimizer);
    EXPECT_EQ(measured.sums, predicted.sums);
    if (format == CommConfig::FP32) {
      EXPECT_EQ(predicted.total(), 20 * kParameters);
    }
  }
}

TEST(HeldMemory, SspHoldsOneCopyOfTheWeights) {
  const JobConfig config = Job(CommConfig::FP32, SyncConfig::SSP);
  const HeldMemory predicted = PredictLaneHeld(config, Table(), ViewOf(kSegments), 0);
  const HeldMemory measured = Measured(config);
  EXPECT_EQ(predicted.weights, 4 * kParameters);
  EXPECT_EQ(measured.weights, predicted.weights);
  EXPECT_EQ(measured.optimizer, predicted.optimizer);
}

TEST(HeldMemory, FollowsWhatTheOptimizerKeeps) {
  JobConfig config = Job(CommConfig::FP32, SyncConfig::BSP);
  config.mutable_optimizer()->set_algorithm(OptimizerConfig::SGD);
  config.mutable_optimizer()->clear_adamw();
  EXPECT_EQ(PredictLaneHeld(config, Table(), ViewOf(kSegments), 0).optimizer, 0u);
  EXPECT_EQ(Measured(config).optimizer, 0u);
}

TEST(HeldMemory, AServerHasItsSegmentsAndItsCopies) {
  const JobConfig config = Job(CommConfig::FP32, SyncConfig::BSP);
  View view = ViewOf(2);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).total(), 20 * 2 * kSegment);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 2).total(), 20 * 4 * kSegment);
  SegmentCopies& copies =
      *view.add_copies();  // the second server has replicas of the first one's segments
  for (uint32_t id = 0; id < kSegments; ++id) copies.add_lane_of_segment(id < 2 ? 2 : 0);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).total(), 20 * 2 * kSegment);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 2).total(), (20 * 4 + 16 * 2) * kSegment);
}

// Server 1 owns two of six segments and caches those of server 2, which is on another host.
TEST(HeldMemory, AServerKeepsWhatItsHostPullsOfOthers) {
  JobConfig config = Job(CommConfig::FP32, SyncConfig::BSP);
  config.mutable_placement()->set_host_weight_cache(true);
  View view = ViewOf(2);
  view.mutable_lanes(0)->set_host_id(7);
  view.mutable_lanes(1)->set_host_id(8);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).cached, 4 * 4 * kSegment);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 2).cached, 4 * 2 * kSegment);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).total(), (20 * 2 + 4 * 4) * kSegment);
  config.mutable_comm()->set_pull_format(CommConfig::INT8);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).cached,
            4 * WeightsBytes(Codec::kInt8, kSegment));
  view.mutable_lanes(1)->set_host_id(7);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).cached, 0u) << "nobody is elsewhere";
  view.mutable_lanes(1)->set_host_id(8);
  config.mutable_placement()->set_host_weight_cache(false);
  EXPECT_EQ(PredictServerHeld(config, Table(), view, 1).cached, 0u);
}

TEST(ServerMemory, CountsWhatAHostKeepsInItsBuffersAndAVersionThatIsStillRead) {
  JobConfig config = Job(CommConfig::INT8, SyncConfig::BSP);
  config.mutable_comm()->set_pull_credit_bytes(5000);
  View view = ViewOf(2);
  view.mutable_lanes(0)->set_host_id(7);
  view.mutable_lanes(1)->set_host_id(8);
  const uint64_t without = PredictServerMemory(config, Table(), view, 1).line_bytes;
  config.mutable_placement()->set_host_weight_cache(true);
  // Four segments, each a little more than 4 KiB as int8.
  EXPECT_EQ(PredictServerMemory(config, Table(), view, 1).line_bytes,
            without + 2 * 4 * 8192 + 5000);
}

TEST(HeldMemory, InAnAllReduceEveryLaneHasAllSegments) {
  JobConfig config = Job(CommConfig::FP32, SyncConfig::BSP);
  config.set_exchange(JobConfig::ALL_REDUCE);
  config.mutable_comm()->set_shared_memory(true);
  config.mutable_cluster()->set_workers(config.cluster().virtual_workers());
  EXPECT_EQ(PredictServerHeld(config, Table(), ViewOf(2), 1).total(), 20 * kParameters);
  config.mutable_cluster()->set_virtual_workers(4 * config.cluster().workers());
  EXPECT_EQ(PredictServerHeld(config, Table(), ViewOf(2), 1).total(), 24 * kParameters);
}

TEST(HeldMemory, ReadsSingleGradientInMemoryOfLocalWorker) {
  JobConfig config = Job(CommConfig::FP32, SyncConfig::BSP);
  config.mutable_cluster()->set_virtual_workers(1);
  EXPECT_EQ(PredictLaneHeld(config, Table(), ViewOf(kSegments), 0).sums, 4 * kParameters);
  config.mutable_placement()->set_kind(PlacementConfig::ZERO1);
  EXPECT_EQ(PredictLaneHeld(config, Table(), ViewOf(kSegments), 0).sums, 0u);
}

}  // namespace
}  // namespace tug
