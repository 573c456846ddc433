// SPDX-License-Identifier: Apache-2.0
// Lanes that are short of memory for sums: bytes sent, gradients kept by workers, and no deadlock.

#include <gtest/gtest.h>

#include <string>

#include "lab/simulate/cluster.h"
#include "lab/simulate/cluster_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kBlocks = 8;
constexpr uint64_t kElements = 5000;  // per block
constexpr uint64_t kGradientBytes = kBlocks * kElements * sizeof(float);
constexpr uint64_t kCreditBytes = 16384;
constexpr uint32_t kWorkers = 6;  // with one virtual worker each
constexpr uint64_t kSteps = 12;

SimulationOptions DeepJob(uint32_t servers, uint64_t seed) {
  SimulationOptions options = Job(servers, kWorkers, seed);
  CommConfig& comm = *options.config.mutable_comm();
  comm.set_segment_elements(1024);
  comm.set_partition_bytes(8192);
  comm.set_credit_bytes(kCreditBytes);
  options.blocks.clear_blocks();
  for (uint32_t b = 0; b < kBlocks; ++b) {
    BlockSpec* block = options.blocks.add_blocks();
    block->set_name("block." + std::to_string(b));
    TensorSpec* matrix = block->add_tensors();
    matrix->add_shape(kElements);
    matrix->set_init_std(0.5f);
  }
  options.network = Quiet();
  return options;
}

// Virtual worker 1 is far behind: the gradient of 0 waits for that of 1, and the sum of 2 and 3 for
// both.
void MakeASiblingLate(SimulationOptions& options) {
  StragglerConfig& straggler = *options.config.mutable_straggler();
  straggler.set_virtual_worker(1);
  straggler.set_slowdown(4);
}

// At most a tenth of a gradient waits. A deferred push crosses the network twice, but only those in
// flight when a lane ran short, once in these steps.
TEST(SimulatedMemory, PushesCrossTheNetworkOnceHoweverShortLanesAreOfMemory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulationOptions options = DeepJob(/*servers=*/1, seed);
    options.config.mutable_comm()->set_resend_ms(600000);  // nothing is lost
    MakeASiblingLate(options);
    const SimulationResult roomy = Simulate(options);
    ASSERT_TRUE(roomy.status.ok()) << roomy.status;
    EXPECT_EQ(roomy.deferred, 0u);
    EXPECT_EQ(roomy.pushed_bytes, kSteps * kWorkers * kGradientBytes);
    options.parking_bytes = kGradientBytes / 10;
    const SimulationResult tight = Simulate(options);
    ASSERT_TRUE(tight.status.ok()) << tight.status;
    EXPECT_EQ(tight.weights, roomy.weights);
    EXPECT_GT(tight.deferred, 100u);
    EXPECT_GE(tight.pushed_bytes, roomy.pushed_bytes);
    EXPECT_LE(tight.pushed_bytes, roomy.pushed_bytes + kWorkers * kCreditBytes);
  }
}

// A worker without memory for another gradient waits until its oldest one is received, though lanes
// may have deferred that.
TEST(SimulatedMemory, WorkersThatKeepFewGradientsWaitForLanesAndNeverStandStill) {
  for (const auto clip : {OptimizerConfig::OFF, OptimizerConfig::GLOBAL}) {
    std::vector<std::vector<float>> expected;
    uint64_t deferred = 0;
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      SCOPED_TRACE(OptimizerConfig::Clip_Name(clip) + ", seed " + std::to_string(seed));
      SimulationOptions options = DeepJob(/*servers=*/1 + seed % 3, seed);
      options.config.mutable_optimizer()->set_clip(clip);
      if (seed > 1) {
        PlacementConfig& placement = *options.config.mutable_placement();
        placement.set_kind(seed % 2 == 0 ? PlacementConfig::ZERO2 : PlacementConfig::ZERO3);
        placement.set_prefetch_blocks(seed % 3);
        placement.set_gradient_blocks(1 + seed % 3);
        options.parking_bytes = seed % 4 * 8192;
        options.shared_memory = seed % 5 == 0;
        if (seed % 3 == 0) options.network = Rough();
        if (seed % 4 != 0) MakeASiblingLate(options);
      }
      const SimulationResult result = Simulate(options);
      ASSERT_TRUE(result.status.ok()) << result.status;
      if (expected.empty()) expected = result.weights;
      EXPECT_EQ(result.weights, expected);
      if (seed == 1) continue;
      EXPECT_LE(result.peak_unreceived, options.config.placement().gradient_blocks());
      deferred += result.deferred;
    }
    EXPECT_GT(deferred, 1000u);
  }
}

// The worker that takes over from a lost one may be waiting for a push of that one.
TEST(SimulatedMemory, WorkersThatWaitForLanesTakeOverFromThoseThatAreLost) {
  std::vector<std::vector<float>> expected;
  uint64_t kills = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulationOptions options = DeepJob(/*servers=*/2, seed);
    options.config.mutable_fault()->set_on_worker_loss(seed % 2 == 0 ? FaultConfig::REASSIGN
                                                                     : FaultConfig::WAIT);
    options.config.mutable_fault()->set_max_rollbacks(100);
    options.config.mutable_fault()->set_failure_timeout_ms(300);
    if (seed > 1) {
      options.config.mutable_placement()->set_kind(PlacementConfig::ZERO2);
      options.config.mutable_placement()->set_gradient_blocks(1 + seed % 2);
      options.parking_bytes = seed % 3 * 8192;
      if (seed % 4 == 0) options.network = Rough();
      MakeASiblingLate(options);
      for (uint64_t kill = 0; kill < 3; ++kill) {
        options.faults.push_back({.kind = FaultKind::kKillWorker,
                                  .at = absl::Milliseconds(20 + 97 * kill + 31 * seed),
                                  .pick = static_cast<uint32_t>(seed + 7 * kill),
                                  .lasts = absl::Milliseconds(100),
                                  .seen_at_once = kill % 2 == 0});
      }
    }
    const SimulationResult result = Simulate(options);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.final_version, kSteps);
    if (expected.empty()) expected = result.weights;
    EXPECT_EQ(result.weights, expected);
    kills += result.faults[static_cast<size_t>(FaultKind::kKillWorker)];
  }
  EXPECT_GT(kills, 30u);
}

// The coordinator ends the job when all workers report a pause; the worker that repeats the lost
// one's step waits at the gate until then.
TEST(SimulatedMemory, AStopAmidLossesEndsThoughWorkersWaitForLanes) {
  uint64_t stopped = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulationOptions options = DeepJob(/*servers=*/1 + seed % 2, seed);
    options.config.mutable_fault()->set_on_worker_loss(seed % 3 == 0 ? FaultConfig::REASSIGN
                                                                     : FaultConfig::WAIT);
    options.config.mutable_fault()->set_max_rollbacks(100);
    options.config.mutable_fault()->set_failure_timeout_ms(300);
    options.config.mutable_placement()->set_kind(PlacementConfig::ZERO2);
    options.config.mutable_placement()->set_gradient_blocks(1);
    options.parking_bytes = seed % 2 * 8192;
    MakeASiblingLate(options);
    const absl::Duration lost = absl::Milliseconds(20 + 13 * seed);
    options.faults.push_back({.kind = FaultKind::kKillWorker,
                              .at = lost,
                              .pick = static_cast<uint32_t>(seed),
                              .lasts = absl::Milliseconds(100),
                              .seen_at_once = seed % 2 == 0});
    options.stop_after = lost + absl::Milliseconds(seed % 5 * 40);
    options.longest = absl::Hours(1);
    const SimulationResult result = Simulate(options);
    ASSERT_TRUE(result.status.ok()) << result.status;
    stopped += result.final_version < kSteps ? 1 : 0;
  }
  EXPECT_GT(stopped, 20u);
}

}  // namespace
}  // namespace tug
