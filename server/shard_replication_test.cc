// SPDX-License-Identifier: Apache-2.0
// Jobs with replicated segments: although lanes are lost and join, and segments move, the result
// equals that of a single undisturbed lane.
#include <gtest/gtest.h>

#include "server/replicated_job_test_support.h"

namespace tug {
namespace {

using Options = ReplicatedJob::Options;

std::vector<ReplicatedJob::State> Undisturbed(Options options) {
  options.lanes = 1;
  options.copies = options.rough = options.faults = false;
  ReplicatedJob job(options);
  job.Run();
  std::vector<ReplicatedJob::State> states;
  for (uint32_t id = 0; id < ReplicatedJob::kSegments; ++id) states.push_back(job.OwnerState(id));
  return states;
}

void ExpectOwnersHave(ReplicatedJob& job, const std::vector<ReplicatedJob::State>& expected) {
  for (uint32_t id = 0; id < ReplicatedJob::kSegments; ++id) {
    EXPECT_TRUE(job.OwnerState(id) == expected[id]) << "segment " << id;
  }
}

void ExpectCopiesAreAsTheirOwners(ReplicatedJob& job) {
  for (uint32_t id = 0; id < ReplicatedJob::kSegments; ++id) {
    const auto copy = job.CopyState(id);
    ASSERT_TRUE(copy.has_value());
    EXPECT_TRUE(*copy == job.OwnerState(id)) << "segment " << id;
  }
}

// Adds the counts that tests check over all their jobs.
void Add(const ReplicatedJob::Counts& counts, ReplicatedJob::Counts& all) {
  all.lost_lanes += counts.lost_lanes;
  all.moves += counts.moves;
  all.lost_workers += counts.lost_workers;
  all.filled += counts.filled;
  all.old_views += counts.old_views;
  all.pulls_of_lanes += counts.pulls_of_lanes;
}

TEST(ShardReplication, SumsHaveBitsOfOneLaneDespiteLossesAndMoves) {
  ReplicatedJob::Counts all;
  for (const auto clip :
       {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    for (const auto format :
         {CommConfig::FP32, CommConfig::BF16, CommConfig::INT8, CommConfig::CHANGES}) {
      const auto whole = Undisturbed({.clip = clip, .pull_format = format});
      const auto encoded = Undisturbed({.clip = clip, .pull_format = format, .frames = true});
      for (uint32_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE(testing::Message()
                     << "clip " << clip << ", format " << format << ", seed " << seed);
        const bool frames = seed % 2 == 0;
        const auto& expected = frames ? encoded : whole;
        ReplicatedJob job({.clip = clip,
                           .pull_format = format,
                           .frames = frames,
                           .lanes = 2 + seed % 3,
                           .parking_bytes = seed % 4 * 16 * ReplicatedJob::kElements,
                           .seed = seed});
        job.Run();
        if (testing::Test::HasFailure()) return;
        ExpectOwnersHave(job, expected);
        ExpectCopiesAreAsTheirOwners(job);
        if (testing::Test::HasFailure()) return;
        Add(job.counts(), all);
      }
    }
  }
  EXPECT_GT(all.lost_lanes, 200u);
  EXPECT_GT(all.moves, 200u);
  EXPECT_GT(all.lost_workers, 200u);
  EXPECT_GT(all.filled, 1000u);
  EXPECT_GT(all.old_views, 1000u);
}

TEST(ShardReplication, AppliesEveryPushOnceDespiteLossesAndMoves) {
  ReplicatedJob::Counts all;
  for (const auto policy : {SyncConfig::SSP, SyncConfig::ASP}) {
    for (uint32_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(testing::Message() << "policy " << policy << ", seed " << seed);
      ReplicatedJob job({.policy = policy,
                         .frames = seed % 2 == 0,
                         .lanes = 2 + seed % 3,
                         .parking_bytes = seed % 4 * 16 * ReplicatedJob::kElements,
                         .seed = seed});
      job.Run();
      if (testing::Test::HasFailure()) return;
      for (uint32_t id = 0; id < ReplicatedJob::kSegments; ++id) {
        const auto [version, weights, m, v] = job.OwnerState(id);
        EXPECT_EQ(version, ReplicatedJob::kVirtualWorkers * ReplicatedJob::kClocks);
        for (const float w : weights) ASSERT_EQ(w, -ReplicatedJob::SumOfPushes());
      }
      ExpectCopiesAreAsTheirOwners(job);
      if (testing::Test::HasFailure()) return;
      Add(job.counts(), all);
    }
  }
  EXPECT_GT(all.lost_lanes, 100u);
  EXPECT_GT(all.moves, 100u);
}

// The owner compensates; replicas get the gradient that it applied.
TEST(ShardReplication, CopiesOfCompensatedUpdatesAreAsTheirOwners) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ReplicatedJob job({.policy = SyncConfig::ASP, .delay_compensation = 0.0001, .seed = seed});
    job.Run();
    if (testing::Test::HasFailure()) return;
    ExpectCopiesAreAsTheirOwners(job);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ShardReplication, WithoutCopiesAPlacementMovesNothingButViews) {
  const auto expected = Undisturbed({.clip = OptimizerConfig::GLOBAL});
  ReplicatedJob job({.clip = OptimizerConfig::GLOBAL, .copies = false, .seed = 3});
  job.Run();
  ExpectOwnersHave(job, expected);
  EXPECT_EQ(job.counts().updates, 0u);
}

// placement.host_weight_cache: lanes pull from each other for the workers on their host, while
// messages are lost, repeated and reordered, segments move and lanes are lost.
TEST(ShardReplication, WeightsThatLanesKeepForTheirHostAreThoseOfTheOwner) {
  ReplicatedJob::Counts all;
  for (const auto format : {CommConfig::FP32, CommConfig::BF16, CommConfig::INT8}) {
    const auto expected = Undisturbed({.pull_format = format});
    for (uint32_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(testing::Message() << "format " << format << ", seed " << seed);
      ReplicatedJob job({.pull_format = format,
                         .lanes = 2 + seed % 3,
                         .copies = seed % 4 != 0,
                         .cached_hosts = 1 + seed % 2,
                         .seed = seed});
      job.Run();
      if (testing::Test::HasFailure()) return;
      ExpectOwnersHave(job, expected);
      if (testing::Test::HasFailure()) return;
      Add(job.counts(), all);
    }
  }
  EXPECT_GT(all.pulls_of_lanes, 4000u);
  EXPECT_GT(all.lost_lanes, 50u);
  EXPECT_GT(all.moves, 50u);
  EXPECT_GT(all.lost_workers, 50u);
}

// Two lanes with one block each: a worker pulls both at every clock.
TEST(ShardReplication, ALanePullsOnceForAllWorkersOnItsHost) {
  for (const uint32_t hosts : {1u, 2u}) {
    ReplicatedJob job(
        {.lanes = 2, .copies = false, .rough = false, .faults = false, .cached_hosts = hosts});
    job.Run();
    EXPECT_GE(job.counts().pulls, 4 * ReplicatedJob::kClocks);
    EXPECT_EQ(job.counts().pulls_of_lanes, hosts * ReplicatedJob::kClocks);
  }
}

}  // namespace
}  // namespace tug
