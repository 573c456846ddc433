// SPDX-License-Identifier: Apache-2.0
// Every sync policy over a network that loses, repeats and reorders.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "config/sync_mode.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/cluster_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kVirtualWorkers = 6;

SimulationOptions PolicyJob(SyncConfig::Policy policy, uint64_t seed) {
  SimulationOptions options = Job(2, 3, seed);
  options.config.mutable_cluster()->set_virtual_workers(kVirtualWorkers);
  options.config.mutable_comm()->set_segment_elements(1024);
  SyncConfig& sync = *options.config.mutable_sync();
  sync.set_policy(policy);
  sync.set_staleness(1);
  sync.set_backups(1);
  sync.set_local_steps(1);
  options.config.mutable_optimizer()->set_algorithm(OptimizerConfig::ADAMW);
  options.config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  if (seed > 1) options.network = Rough();
  return options;
}

uint64_t Sum(const std::vector<uint64_t>& steps) {
  return std::accumulate(steps.begin(), steps.end(), uint64_t{0});
}

// The last evaluations of all workers read the lanes' final weights.
void ExpectEvaluatedTheFinalWeights(const SimulationResult& result) {
  for (const auto& evaluated : result.evaluated) EXPECT_EQ(evaluated, result.weights);
}

TEST(SimulatedPolicies, EveryPolicyEndsWithEveryPushAppliedOnce) {
  for (const SyncMode& mode : kSyncModes) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimulationOptions options = PolicyJob(mode.policy, seed);
      if (seed % 3 == 0) options.parking_bytes = 4096;
      if (seed % 4 == 0) options.shared_memory = true;
      if (seed % 5 == 0) options.config.mutable_straggler()->set_slowdown(4);
      if (seed % 7 == 0) options.schedule_change_probability = 0.2;
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(std::string(mode.name) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ExpectEvaluatedTheFinalWeights(result);
      EXPECT_EQ(result.losses.size(), 12u);
      if (mode.update_per_push) {
        EXPECT_EQ(Sum(result.steps), 12 * kVirtualWorkers);
        EXPECT_EQ(result.updates, Sum(result.steps));
        EXPECT_EQ(result.final_version, Sum(result.steps));
      } else {
        EXPECT_EQ(result.final_version, 12u);
        EXPECT_EQ(Sum(result.steps) + result.skipped, 12 * kVirtualWorkers);
        EXPECT_TRUE(mode.skips_steps || result.skipped == 0);
      }
    }
  }
}

// With gradients that do not depend on the weights, and SGD at a constant rate, the weights show
// how often each push was applied, in any order.
TEST(SimulatedPolicies, WeightsShowEveryPushAppliedOnce) {
  std::vector<std::vector<float>> initial;
  for (const SyncConfig::Policy policy : {SyncConfig::SSP, SyncConfig::ASP}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SimulationOptions options = PolicyJob(policy, seed);
      options.gradient_of_weights = false;
      options.config.mutable_sync()->set_staleness_scaling(SyncConfig::NONE);
      OptimizerConfig& optimizer = *options.config.mutable_optimizer();
      optimizer.set_algorithm(OptimizerConfig::SGD);
      optimizer.set_schedule(OptimizerConfig::CONSTANT);
      optimizer.set_warmup_steps(0);
      optimizer.set_learning_rate(0.01);
      const SimulationResult result = Simulate(options);
      ASSERT_TRUE(result.status.ok()) << result.status;
      // Runs differ in the clocks at which virtual workers end, so this run gives the initial
      // weights only.
      SimulationOptions none = options;
      none.config.mutable_optimizer()->set_learning_rate(0);
      if (initial.empty()) initial = Simulate(none).weights;
      for (uint32_t block = 0; block < result.weights.size(); ++block) {
        for (size_t e = 0; e < result.weights[block].size(); e += 997) {
          double expected = initial[block][e];
          for (uint32_t v = 0; v < kVirtualWorkers; ++v) {
            for (uint64_t clock = 0; clock < result.steps[v]; ++clock) {
              // Two micro-batches.
              expected -= 0.01 * 2 * SimulatedGradient(v, clock, block, e) / kSimulatedTokens;
            }
          }
          EXPECT_NEAR(result.weights[block][e], expected, 1e-5);
        }
      }
    }
  }
}

TEST(SimulatedPolicies, LeadNeverExceedsStalenessBound) {
  for (uint32_t staleness : {0u, 1u, 3u}) {
    uint64_t most = 0;
    for (uint64_t seed = 2; seed <= 9; ++seed) {
      SimulationOptions options = PolicyJob(SyncConfig::SSP, seed);
      options.config.mutable_cluster()->set_workers(seed % 2 == 0 ? 6 : 4);
      options.config.mutable_train()->set_steps(20);
      options.config.mutable_sync()->set_staleness(staleness);
      options.config.mutable_straggler()->set_slowdown(8);
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE("staleness " + std::to_string(staleness) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_LE(result.max_lead, staleness);
      most = std::max(most, result.max_lead);
    }
    EXPECT_EQ(most, staleness) << "the bound is reached";
  }
}

TEST(SimulatedPolicies, AspDoesNotWaitForTheSlowest) {
  SimulationOptions options = PolicyJob(SyncConfig::ASP, 1);
  options.config.mutable_cluster()->set_workers(6);
  options.config.mutable_train()->set_steps(40);
  options.config.mutable_straggler()->set_slowdown(8);
  const SimulationResult result = Simulate(options);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_LT(2 * result.steps[0], result.steps[1]);
  EXPECT_GT(result.max_lead, 5u);
  EXPECT_GT(result.most_staleness, 5u);
}

TEST(SimulatedPolicies, BackupSkipsWhoIsTooSlowAndWaitsForNobodyElse) {
  for (uint64_t seed = 2; seed <= 9; ++seed) {
    SimulationOptions options = PolicyJob(SyncConfig::BACKUP, seed);
    options.config.mutable_cluster()->set_workers(6);
    options.config.mutable_train()->set_steps(30);
    options.config.mutable_straggler()->set_slowdown(8);
    if (seed % 2 == 0) options.network = Quiet();  // otherwise losses make other workers slow too
    const SimulationResult result = Simulate(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.final_version, 30u);
    EXPECT_GT(result.skipped, 0u);
    EXPECT_GT(result.dropped_pushes, 0u);
    if (seed % 2 == 0) {
      EXPECT_LT(result.steps[0], 10u);
    }
    ExpectEvaluatedTheFinalWeights(result);
  }
}

TEST(SimulatedPolicies, LocalStepsRunWhereverPushesAreSummed) {
  for (const SyncMode& mode : kSyncModes) {
    if (mode.update_per_push) continue;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SimulationOptions options = PolicyJob(mode.policy, seed);
      SyncConfig& sync = *options.config.mutable_sync();
      sync.set_local_steps(3);
      sync.mutable_outer()->set_learning_rate(0.01);
      sync.mutable_outer()->set_momentum(0.9);
      sync.mutable_outer()->set_nesterov(true);
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(std::string(mode.name) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      ExpectEvaluatedTheFinalWeights(result);
    }
  }
}

TEST(SimulatedPolicies, StopsInOrderWheneverAsked) {
  for (const SyncMode& mode : kSyncModes) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimulationOptions options = PolicyJob(mode.policy, seed);
      options.config.mutable_cluster()->set_workers(seed % 2 == 0 ? 6 : 4);
      options.config.mutable_train()->set_steps(1000);
      options.config.mutable_sync()->set_staleness(seed % 3);
      options.config.mutable_straggler()->set_slowdown(1.0 + static_cast<double>(seed % 4));
      options.stop_after = absl::Milliseconds(30 + 17 * static_cast<int64_t>(seed));
      const SimulationResult result = Simulate(options);
      SCOPED_TRACE(std::string(mode.name) + ", seed " + std::to_string(seed));
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_LT(result.losses.size(), 1000u);
      if (mode.update_per_push) {
        EXPECT_EQ(result.updates, Sum(result.steps));
      }
      if (result.losses.empty()) continue;
      EXPECT_EQ(result.checkpoints.back(), result.losses.size());
      ExpectEvaluatedTheFinalWeights(result);
    }
  }
}

}  // namespace
}  // namespace tug
