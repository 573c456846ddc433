// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/cluster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/simulate/cluster_test_support.h"
#include "scheduler/policy.h"

namespace tug {
namespace {

TEST(SimulatedCluster, TwoServersAndThreeWorkersEndWithTheBitsOfAQuietNetwork) {
  SimulationOptions options = Job(2, 3, 1);
  options.network = Quiet();
  const SimulationResult expected = Simulate(options);
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  EXPECT_EQ(expected.final_version, 12u);
  EXPECT_EQ(expected.checkpoints, (std::vector<uint64_t>{5, 10, 12}));
  EXPECT_EQ(expected.losses.size(), 12u);

  uint64_t repeats = 0;
  uint64_t resent = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    options.seed = seed;
    options.network = Rough();
    const SimulationResult rough = Simulate(options);
    ASSERT_TRUE(rough.status.ok()) << "seed " << seed << ": " << rough.status;
    EXPECT_EQ(rough.weights, expected.weights) << "seed " << seed;
    EXPECT_EQ(rough.losses, expected.losses) << "seed " << seed;
    repeats += rough.repeats;
    resent += rough.resent;
  }
  EXPECT_GT(repeats, 0u);
  EXPECT_GT(resent, 0u);
}

TEST(SimulatedCluster, EverySchedulingPolicyGivesTheSameBitsOnARoughNetwork) {
  std::vector<std::vector<float>> expected;
  for (const SchedulingPolicy& policy : kSchedulingPolicies) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SimulationOptions options = Job(2, 3, seed);
      options.config.mutable_comm()->set_scheduler(policy.name);
      options.config.mutable_comm()->set_credit_bytes(32768);       // one partition
      options.config.mutable_comm()->set_pull_credit_bytes(65536);  // one partition per lane
      options.network = seed == 1 ? Quiet() : Rough();
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(CommConfig::Scheduler_Name(policy.name) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      if (expected.empty()) expected = result.weights;
      EXPECT_EQ(result.weights, expected);
      EXPECT_GT(result.peak_push_bytes, 0u);
      EXPECT_LE(result.peak_push_bytes, 32768u);
      EXPECT_GT(result.peak_answer_bytes, 0u);
      EXPECT_LE(result.peak_answer_bytes, 32768u);
    }
  }
}

// Nodes change their partitions and credits by themselves, in the middle of steps, so that workers
// and servers hardly ever agree.
TEST(SimulatedCluster, RandomChangesOfScheduleAtRandomTimesGiveTheSameBits) {
  for (auto clip : {OptimizerConfig::OFF, OptimizerConfig::GLOBAL}) {
    std::vector<std::vector<float>> expected;
    uint64_t deferred = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimulationOptions options = Job(2, 3, seed);
      options.config.mutable_comm()->set_segment_elements(1024);
      options.config.mutable_optimizer()->set_clip(clip);
      options.network = seed == 1 ? Quiet() : Rough();
      options.shared_memory = seed % 3 == 0;
      options.schedule_change_probability = seed == 1 ? 0 : 0.3;
      // Hardly any memory: pushes with other partitions are deferred too.
      if (seed % 2 == 0) options.parking_bytes = 4096;
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE("seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      if (expected.empty()) expected = result.weights;
      EXPECT_EQ(result.weights, expected);
      if (seed == 1) continue;
      EXPECT_GT(result.schedule_changes, 50u);
      deferred += result.deferred;
    }
    EXPECT_GT(deferred, 0u);
  }
}

TEST(SimulatedCluster, ATunerThatChangesItsMindAtEveryStepGivesTheSameBits) {
  std::vector<std::vector<float>> expected;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SimulationOptions options = Job(2, 3, seed);
    CommConfig& comm = *options.config.mutable_comm();
    comm.set_segment_elements(1024);
    options.config.mutable_train()->set_steps(60);
    options.network = seed == 1 ? Quiet() : Rough();
    if (seed > 1) {
      comm.set_scheduler(CommConfig::AUTO);
      comm.mutable_tuner()->set_trials(1000);
      comm.mutable_tuner()->set_steps_per_trial(1);
      comm.mutable_tuner()->set_drift(0.2);
    }
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    if (expected.empty()) expected = result.weights;
    EXPECT_EQ(result.weights, expected);
    if (seed == 1) continue;
    EXPECT_GE(result.trials, 15u);
    EXPECT_GE(result.schedule_changes, 3 * result.trials) << "of five nodes";
  }
}

TEST(SimulatedCluster, AnyNumberOfServersLanesWorkersAndAnySegmentSizeGiveTheSameBits) {
  for (auto clip : {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    std::vector<std::vector<float>> expected;
    for (uint32_t servers : {1u, 2u, 3u}) {
      for (uint32_t lanes : {1u, 2u}) {
        for (uint32_t workers : {1u, 2u, 4u, 6u}) {
          for (uint64_t segment_elements : {4096u, 8192u}) {
            SimulationOptions options = Job(servers, workers, servers + 10 * workers);
            options.config.mutable_cluster()->set_lanes_per_server(lanes);
            options.config.mutable_comm()->set_segment_elements(segment_elements);
            options.config.mutable_optimizer()->set_clip(clip);
            const SimulationResult result = Simulate(options);
            ASSERT_TRUE(result.status.ok()) << result.status;
            if (expected.empty()) expected = result.weights;
            EXPECT_EQ(result.weights, expected)
                << servers << " servers, " << lanes << " lanes, " << workers << " workers, "
                << segment_elements << " elements a segment";
          }
        }
      }
    }
  }
}

TEST(SimulatedCluster, Int8PullsHaveTheSameBitsHoweverTheyAreCutAndWhoeverSendsThem) {
  std::vector<std::vector<float>> expected;
  for (uint32_t servers : {1u, 3u}) {
    for (uint32_t workers : {1u, 2u, 6u}) {
      for (uint64_t segment_elements : {4096u, 8192u}) {
        for (uint64_t partition_bytes : {32768u, 131072u}) {
          SimulationOptions options = Job(servers, workers, servers + 10 * workers);
          options.config.mutable_cluster()->set_lanes_per_server(2);
          options.config.mutable_comm()->set_segment_elements(segment_elements);
          options.config.mutable_comm()->set_partition_bytes(partition_bytes);
          options.config.mutable_comm()->set_pull_format(CommConfig::INT8);
          options.shared_memory = workers == 2;
          options.network = servers == 1 ? Quiet() : Rough();
          const SimulationResult result = Simulate(options);
          ASSERT_TRUE(result.status.ok()) << result.status;
          if (expected.empty()) expected = result.weights;
          EXPECT_EQ(result.weights, expected)
              << servers << " servers, " << workers << " workers, " << segment_elements
              << " elements a segment, " << partition_bytes << " bytes a partition";
        }
      }
    }
  }
  SimulationOptions full = Job(1, 1, 1);
  EXPECT_NE(Simulate(full).weights, expected) << "the format had no effect";
}

// Virtual workers push in random order, so much has to wait, with hardly any memory for it.
TEST(SimulatedCluster, DefersPushesForWantOfMemoryAndEndsWithTheSameBits) {
  for (auto clip : {OptimizerConfig::OFF, OptimizerConfig::GLOBAL}) {
    for (auto format : {CommConfig::FP32, CommConfig::BF16, CommConfig::INT8}) {
      SimulationOptions options = Job(2, 9, 1);
      options.config.mutable_cluster()->set_virtual_workers(9);
      options.config.mutable_cluster()->set_lanes_per_server(2);
      if (format == CommConfig::BF16) {
        PushCodecConfig& codec = *options.config.mutable_comm()->mutable_push_codec();
        codec.mutable_bf16();
        codec.set_min_elements(0);
        codec.set_vectors(true);
      }
      options.config.mutable_comm()->set_pull_format(format);
      options.config.mutable_optimizer()->set_clip(clip);
      options.network = Quiet();
      const SimulationResult expected = Simulate(options);
      ASSERT_TRUE(expected.status.ok()) << expected.status;
      EXPECT_EQ(expected.deferred, 0u);
      uint64_t deferred = 0;
      for (uint64_t seed = 1; seed <= 12; ++seed) {
        options.seed = seed;
        options.network = seed % 2 == 0 ? Rough() : Quiet();
        options.shared_memory = seed % 3 == 0;
        options.parking_bytes = seed % 4 * 16384;
        const SimulationResult tight = Simulate(options);
        ASSERT_TRUE(tight.status.ok()) << "seed " << seed << ": " << tight.status;
        EXPECT_EQ(tight.weights, expected.weights) << "seed " << seed;
        EXPECT_EQ(tight.losses, expected.losses) << "seed " << seed;
        deferred += tight.deferred;
        // All the weights, the parking, and one partition per level of the tree.
        EXPECT_LE(tight.peak_held_bytes, 4 * 33231 + options.parking_bytes + 6 * 32768);
      }
      EXPECT_GT(deferred, 0u);
    }
  }
}

TEST(SimulatedCluster, ReplaysFromItsSeed) {
  SimulationOptions options = Job(2, 3, 7);
  options.network = Rough();
  const SimulationResult first = Simulate(options);
  const SimulationResult second = Simulate(options);
  EXPECT_EQ(first.virtual_time, second.virtual_time);
  EXPECT_EQ(first.messages, second.messages);
}

TEST(SimulatedCluster, SkipsAnUpdateThatIsNotFiniteAndNamesBlockAndVirtualWorker) {
  for (auto clip : {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    SimulationOptions options = Job(2, 3, 3);
    options.config.mutable_optimizer()->set_clip(clip);
    options.poisoned_virtual_worker = 4;
    options.poisoned_clock = 6;
    const SimulationResult result = Simulate(options);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.final_version, 12u);
    ASSERT_EQ(result.notices.size(), 1u);
    EXPECT_NE(result.notices[0].find("step 7"), std::string::npos) << result.notices[0];
    EXPECT_NE(result.notices[0].find("block.0 from virtual worker 4"), std::string::npos)
        << result.notices[0];
    for (const auto& block : result.weights) {
      for (float weight : block) ASSERT_TRUE(std::isfinite(weight));
    }
  }
}

TEST(SimulatedCluster, StopsInOrderAtOneVersionEverywhereWheneverAsked) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SimulationOptions options = Job(2, 3, seed);
    options.config.mutable_train()->set_steps(1000);
    options.stop_after = absl::Milliseconds(30 + 7 * static_cast<int64_t>(seed));
    const SimulationResult result = Simulate(options);
    ASSERT_TRUE(result.status.ok()) << "seed " << seed << ": " << result.status;
    EXPECT_LT(result.final_version, 1000u);
    EXPECT_EQ(result.losses.size(), result.final_version) << "seed " << seed;
    if (result.final_version > 0) {
      EXPECT_EQ(result.checkpoints.back(), result.final_version) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tug
