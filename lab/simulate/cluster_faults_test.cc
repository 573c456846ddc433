// SPDX-License-Identifier: Apache-2.0
// Simulated jobs whose processes die at random times and are replaced.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/cluster_test_support.h"

namespace tug {
namespace {

SimulationOptions FaultyJob(uint64_t seed, FaultConfig::WorkerLoss on_loss) {
  SimulationOptions options = Job(2, 3, seed);
  options.config.mutable_train()->set_steps(30);
  options.config.mutable_fault()->set_on_worker_loss(on_loss);
  options.config.mutable_fault()->set_max_rollbacks(100);
  // Declared lost within 300 ms; a step takes some 50 ms.
  options.config.mutable_fault()->set_failure_timeout_ms(300);
  return options;
}

// Kills this many workers and servers at random times of the first two seconds; their replacements
// start within 200 ms.
void AddKills(uint64_t workers, uint64_t servers, SimulationOptions& options) {
  std::mt19937_64 random(options.seed);
  for (uint64_t i = 0; i < workers + servers; ++i) {
    options.faults.push_back({.kind = i < workers ? FaultKind::kKillWorker : FaultKind::kKillServer,
                              .at = absl::Milliseconds(random() % 2000),
                              .pick = static_cast<uint32_t>(random()),
                              .lasts = absl::Milliseconds(random() % 200),
                              .seen_at_once = random() % 2 == 0});
  }
}

uint64_t Kills(const SimulationResult& result) {
  return result.faults[static_cast<size_t>(FaultKind::kKillWorker)] +
         result.faults[static_cast<size_t>(FaultKind::kKillServer)];
}

void AddErrorFeedback(SimulationOptions& options) {
  PushCodecConfig& codec = *options.config.mutable_comm()->mutable_push_codec();
  codec.mutable_top_k()->set_density(0.1);
  codec.set_error_feedback(true);
  codec.set_min_elements(0);
  codec.set_vectors(true);
  codec.set_blocks("*");
}

std::vector<std::vector<float>> Undisturbed(CommConfig::Format pull_format = CommConfig::FP32) {
  SimulationOptions options = FaultyJob(1, FaultConfig::REASSIGN);
  options.config.mutable_comm()->set_pull_format(pull_format);
  const SimulationResult result = Simulate(options);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.final_version, 30u);
  return result.weights;
}

TEST(SimulatedFaults, WorkersThatDieChangeNoBitWhetherOthersTakeOverOrTheJobWaits) {
  const auto expected = Undisturbed();
  uint64_t kills = 0;
  for (const auto on_loss : {FaultConfig::REASSIGN, FaultConfig::WAIT}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimulationOptions options = FaultyJob(seed, on_loss);
      AddKills(1 + seed % 4, 0, options);
      options.network = seed % 2 == 0 ? Rough() : Quiet();
      options.shared_memory = seed % 3 == 0;
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(FaultConfig::WorkerLoss_Name(on_loss) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(result.final_version, 30u);
      ASSERT_EQ(result.weights, expected);
      EXPECT_EQ(result.losses.size(), 30u);
      kills += Kills(result);
    }
  }
  EXPECT_GT(kills, 60u);
}

// Workers have freed gradients that lanes have received, and weights that are not in use.
TEST(SimulatedFaults, NodesThatDieChangeNoBitWhereWorkersLetGoOfGradientsAndWeights) {
  const auto expected = Undisturbed();
  uint64_t kills = 0;
  uint64_t resent = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
    PlacementConfig& placement = *options.config.mutable_placement();
    placement.set_kind(seed % 4 == 0 ? PlacementConfig::ZERO2 : PlacementConfig::ZERO3);
    placement.set_prefetch_blocks(static_cast<uint32_t>(seed % 4) - (seed % 4 > 0 ? 1 : 0));
    placement.set_gradient_blocks(1);
    AddKills(seed % 3, seed % 5 == 0 ? 1 : 0, options);
    options.network = seed % 2 == 0 ? Rough() : Quiet();
    options.shared_memory = seed % 3 == 0;
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.final_version, 30u);
    ASSERT_EQ(result.weights, expected);
    kills += Kills(result);
    resent += result.resent;
  }
  EXPECT_GT(kills, 15u);
  EXPECT_GT(resent, 0u);
}

// Lanes cache weights for the workers on their host (placement.host_weight_cache), on two hosts,
// while nodes die, the job rolls back to checkpoints, and segments move to servers that join, or
// from those that leave.
TEST(SimulatedFaults, WeightsThatHostsKeepAreThoseOfTheirOwnersWhoeverDies) {
  const std::vector<std::vector<float>> expected[] = {Undisturbed(), Undisturbed(CommConfig::INT8)};
  uint64_t kills = 0, timelines = 0, caching = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
    options.hosts = 2;
    const bool moves = seed % 4 == 0;
    const bool int8 = seed % 3 == 0;
    PlacementConfig& placement = *options.config.mutable_placement();
    placement.set_host_weight_cache(true);
    placement.set_kind(moves ? PlacementConfig::SERVERS : PlacementConfig::ZERO3);
    placement.set_prefetch_blocks(static_cast<uint32_t>(seed % 3));
    placement.set_gradient_blocks(1);
    if (int8) options.config.mutable_comm()->set_pull_format(CommConfig::INT8);
    if (moves) {
      options.config.mutable_sync()->set_replicas(2);
      for (const FaultKind kind : {FaultKind::kJoinServer, FaultKind::kDrainServer}) {
        options.faults.push_back({.kind = kind,
                                  .at = absl::Milliseconds(200 + 100 * options.faults.size()),
                                  .pick = static_cast<uint32_t>(seed),
                                  .lasts = absl::Milliseconds(100)});
      }
    }
    AddKills(seed % 3, seed % 5 < 2 ? 1 : 0, options);
    options.network = seed % 2 == 0 ? Rough() : Quiet();
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.final_version, 30u);
    ASSERT_EQ(result.weights, expected[int8 ? 1 : 0]);
    kills += Kills(result);
    timelines += result.timelines;
    caching += result.peak_cached_bytes > 0 ? 1 : 0;
  }
  EXPECT_GT(kills, 15u);
  EXPECT_GT(timelines, 26u) << "some jobs went back";
  EXPECT_GT(caching, 16u) << "some have all servers on one host in the end";
}

TEST(SimulatedFaults, ServersThatDieTakeTheJobBackToACheckpointAndChangeNoBit) {
  const auto expected = Undisturbed();
  uint64_t timelines = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
    AddKills(seed % 3, 1 + seed % 2, options);
    options.network = seed % 2 == 0 ? Rough() : Quiet();
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.final_version, 30u);
    ASSERT_EQ(result.weights, expected);
    timelines += result.timelines;
  }
  EXPECT_GT(timelines, 30u);
}

TEST(SimulatedFaults, ServersThatDieChangeNoBitOfWhatErrorFeedbackKeeps) {
  SimulationOptions undisturbed = FaultyJob(1, FaultConfig::REASSIGN);
  AddErrorFeedback(undisturbed);
  const SimulationResult expected = Simulate(undisturbed);
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  EXPECT_NE(expected.weights, Undisturbed());
  uint64_t went_on = 0;  // runs that continued from a checkpoint
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
    AddErrorFeedback(options);
    AddKills(0, 1 + seed % 2, options);
    options.network = seed % 2 == 0 ? Rough() : Quiet();
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.final_version, 30u);
    ASSERT_EQ(result.weights, expected.weights);
    went_on += result.start_version > 0 ? 1 : 0;
  }
  EXPECT_GT(went_on, 5u);
}

// Whichever node a checkpoint waits for, it completes.
TEST(SimulatedFaults, WithErrorFeedbackEveryJobEndsWithItsCheckpointWhoeverDies) {
  for (const auto policy : {SyncConfig::BSP, SyncConfig::SSP, SyncConfig::ASP}) {
    for (const auto on_loss : {FaultConfig::REASSIGN, FaultConfig::WAIT, FaultConfig::SHRINK}) {
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        SimulationOptions options = FaultyJob(seed, on_loss);
        options.config.mutable_sync()->set_policy(policy);
        options.config.mutable_sync()->set_staleness(2);
        options.config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
        AddErrorFeedback(options);
        AddKills(seed % 3, seed % 2, options);
        options.network = seed % 2 == 0 ? Rough() : Quiet();
        const SimulationResult result = Simulate(options);
        SCOPED_TRACE(SyncConfig::Policy_Name(policy) + ", " +
                     FaultConfig::WorkerLoss_Name(on_loss) + ", seed " + std::to_string(seed));
        ASSERT_TRUE(result.status.ok()) << result.status;
        ASSERT_FALSE(result.checkpoints.empty());
        EXPECT_EQ(result.checkpoints.back(), 30u);
      }
    }
  }
}

// The slow virtual worker never writes parts of checkpoints that lanes wrote while it was far
// behind.
TEST(SimulatedFaults, WithErrorFeedbackAVirtualWorkerFarBehindKeepsNoJobFromItsEnd) {
  for (const auto policy : {SyncConfig::BACKUP, SyncConfig::SSP, SyncConfig::ASP}) {
    for (uint64_t seed = 2; seed <= 3; ++seed) {
      SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
      options.config.mutable_cluster()->set_workers(options.config.cluster().virtual_workers());
      options.config.mutable_sync()->set_policy(policy);
      options.config.mutable_sync()->set_backups(1);
      options.config.mutable_sync()->set_staleness(100);
      options.config.mutable_train()->set_steps(60);
      options.config.mutable_checkpoint()->set_interval(1);
      options.config.mutable_straggler()->set_slowdown(50);
      options.config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
      AddErrorFeedback(options);
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(SyncConfig::Policy_Name(policy) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_FALSE(result.checkpoints.empty());
      EXPECT_EQ(result.checkpoints.back(), 60u);
    }
  }
}

// Hundreds of steps per heartbeat. Servers send heartbeats at different times, so the newest
// checkpoints that they report differ too.
TEST(SimulatedFaults, CheckpointsFarMoreFrequentThanHeartbeatsAreCommittedAndEndTheJob) {
  for (const uint64_t interval : {1, 2, 3}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(absl::StrCat("interval ", interval, ", seed ", seed));
      SimulationOptions options = Job(3, 2, seed);
      options.config.mutable_train()->set_steps(500);
      options.config.mutable_checkpoint()->set_interval(interval);
      options.config.mutable_checkpoint()->set_keep(2);
      options.config.mutable_fault()->set_failure_timeout_ms(3000);
      options.beat_interval = absl::Milliseconds(300);
      options.max_compute = absl::Microseconds(100);
      options.network = {absl::Microseconds(10), absl::Microseconds(20), 0, 0};
      const SimulationResult result = Simulate(options);
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_GE(result.checkpoints.size(), 4u);
      EXPECT_EQ(result.checkpoints.back(), 500u);
    }
  }
}

// The job rolls back to a checkpoint, or with two replicas of every segment continues from the
// current version. A server that dies after the last checkpoint is not waited for: the checkpoint
// has the weights.
class PullFaults : public testing::TestWithParam<CommConfig::Format> {};
INSTANTIATE_TEST_SUITE_P(SimulatedFaults, PullFaults,
                         testing::Values(CommConfig::INT8, CommConfig::CHANGES));
TEST_P(PullFaults, ServersThatDieChangeNoBit) {
  const auto expected = Undisturbed(GetParam());
  EXPECT_NE(expected, Undisturbed());
  uint64_t timelines[3] = {0, 0, 0};  // by replicas
  for (const uint32_t replicas : {1u, 2u}) {
    uint64_t kills = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
      options.config.mutable_comm()->set_pull_format(GetParam());
      options.config.mutable_sync()->set_replicas(replicas);
      AddKills(seed % 3, 1, options);
      options.network = seed % 2 == 0 ? Rough() : Quiet();
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE("replicas " + std::to_string(replicas) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(result.final_version, 30u);
      ASSERT_EQ(result.saved_weights, expected);
      timelines[replicas] += result.timelines;
      kills += Kills(result);
    }
    EXPECT_GE(kills, 10u);
  }
  EXPECT_LT(timelines[2], timelines[1]);
}

TEST(SimulatedFaults, SspAndAspPushesAreAppliedExactlyOnce) {
  for (const auto policy : {SyncConfig::SSP, SyncConfig::ASP}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SimulationOptions options = FaultyJob(seed, FaultConfig::REASSIGN);
      options.config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
      options.config.mutable_sync()->set_policy(policy);
      options.config.mutable_sync()->set_staleness(2);
      AddKills(1 + seed % 3, 0, options);
      options.network = seed % 2 == 0 ? Rough() : Quiet();
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(SyncConfig::Policy_Name(policy) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(result.updates, 30u * 6);
    }
  }
}

TEST(SimulatedFaults, JobsComeToTheirEndWhoeverDies) {
  for (const auto policy : {SyncConfig::BSP, SyncConfig::SSP}) {
    for (const auto on_loss : {FaultConfig::REASSIGN, FaultConfig::WAIT, FaultConfig::SHRINK}) {
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        SimulationOptions options = FaultyJob(seed, on_loss);
        options.config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
        options.config.mutable_sync()->set_policy(policy);
        options.config.mutable_sync()->set_staleness(2);
        AddKills(2, seed % 2, options);
        options.network = Rough();
        const SimulationResult result = Simulate(options);
        SCOPED_TRACE(SyncConfig::Policy_Name(policy) + ", " +
                     FaultConfig::WorkerLoss_Name(on_loss) + ", seed " + std::to_string(seed));
        ASSERT_TRUE(result.status.ok()) << result.status;
      }
    }
  }
}

TEST(SimulatedFaults, ReplayFromTheirSeed) {
  SimulationOptions options = FaultyJob(5, FaultConfig::REASSIGN);
  AddKills(3, 1, options);
  options.network = Rough();
  const SimulationResult first = Simulate(options);
  const SimulationResult second = Simulate(options);
  EXPECT_EQ(first.virtual_time, second.virtual_time);
  EXPECT_EQ(first.messages, second.messages);
}

}  // namespace
}  // namespace tug
