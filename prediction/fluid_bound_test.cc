// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "prediction/scheduling.h"
#include "prediction/scheduling_test_support.h"

namespace tug {
namespace {

using Kind = SimulatedSpan::Kind;

// One worker and one server: all four links carry the same bytes. 1000 parameters take 4 ms on a
// link.
constexpr double kLink = 1e6;

double BoundMs(const JobConfig& job) {
  const absl::StatusOr<SchedulingPrediction> bound = FluidBound(job, kLink);
  TUG_CHECK_OK(bound.status());
  return bound->step_seconds * 1000;
}

TEST(FluidBound, ExposesAllOfASingleBlock) {
  // backward 0..2, weights cross 2..6, forward 6..7
  const absl::StatusOr<SchedulingPrediction> bound =
      FluidBound(ReplayJob(ProfileOf({{1000, 1, 2}}), {}), kLink);
  ASSERT_TRUE(bound.ok());
  EXPECT_NEAR(bound->step_seconds, 0.007, 1e-12);
  EXPECT_NEAR(bound->compute_seconds, 0.003, 1e-12);
  EXPECT_NEAR(bound->exposed_seconds, 0.004, 1e-12);
  ASSERT_EQ(bound->spans.size(), 3u);
  EXPECT_EQ(bound->spans[0].kind, Kind::kBackward);
  EXPECT_EQ(bound->spans[1].kind, Kind::kPush);
  EXPECT_NEAR(bound->spans[1].begin_seconds, 0.002, 1e-12);
  EXPECT_NEAR(bound->spans[1].end_seconds, 0.006, 1e-12);
  EXPECT_EQ(bound->spans[2].kind, Kind::kForward);
}

TEST(FluidBound, HidesALateBlockBehindTheOthersComputation) {
  // Backward: block 1 at 0..1, block 0 at 1..11. Block 1 crosses at 1..9 meanwhile, block 0 at
  // 11..12; forward 12..13 and 13..14.
  EXPECT_NEAR(BoundMs(ReplayJob(ProfileOf({{250, 1, 10}, {2000, 1, 1}}), {})), 14, 1e-9);
}

TEST(FluidBound, LetsAnUrgentBlockInterruptALateHugeOne) {
  // Block 1 crosses from 1, until block 0 is available at 2 and crosses at 2..3; block 1 ends at 1
  // + 40 + 1 = 42 and its forward pass at 43. Block 0's ended at 4.
  const absl::StatusOr<SchedulingPrediction> bound =
      FluidBound(ReplayJob(ProfileOf({{250, 1, 1}, {10000, 1, 1}}), {}), kLink);
  ASSERT_TRUE(bound.ok());
  EXPECT_NEAR(bound->step_seconds, 0.043, 1e-12);
  std::vector<uint32_t> crossed;
  for (const SimulatedSpan& span : bound->spans) {
    if (span.kind == Kind::kPush || span.kind == Kind::kPull) crossed.push_back(span.block);
  }
  EXPECT_EQ(crossed, (std::vector<uint32_t>{1, 0, 1}));
}

TEST(FluidBound, TakesTheLinkOfTheServerWhereManyWorkersMeet) {
  // 4 workers push 4 ms each into one server's link.
  EXPECT_NEAR(BoundMs(ReplayJob(ProfileOf({{1000, 1, 2}}), {"cluster.workers=4"})), 19, 1e-9);
}

TEST(FluidBound, TakesTheBusiestServer) {
  // Three segments of 4.096 ms on two servers: two of them are on one.
  EXPECT_NEAR(
      BoundMs(ReplayJob(ProfileOf({{3 * 1024, 1, 2}}),
                        {"cluster.servers=2", "cluster.workers=2", "comm.segment_elements=1024"})),
      2 + 2 * 2 * 4.096 + 1, 1e-9);
}

TEST(FluidBound, RunsVirtualWorkersOneAfterTheOther) {
  // Backward 0..2, forward and backward 2..5, the gradients cross 2..6 and 6..10: forward 10..11.
  const JobConfig job = ReplayJob(ProfileOf({{1000, 1, 2}}), {"cluster.virtual_workers=2"});
  EXPECT_NEAR(BoundMs(job), 11, 1e-9);
}

TEST(FluidBound, HalvesBytesThatAreBf16) {
  const ReplayProfile profile = ProfileOf({{1000, 1, 2}});
  const std::string all = "comm.push_codec.min_elements=0";
  EXPECT_NEAR(
      BoundMs(ReplayJob(profile, {"comm.push_codec.bf16={}", all, "comm.pull_format=BF16"})), 5,
      1e-9);
  EXPECT_NEAR(BoundMs(ReplayJob(profile, {"comm.push_codec.bf16={}", all})), 7, 1e-9);
  EXPECT_NEAR(BoundMs(ReplayJob(profile, {"comm.push_codec.bf16={}", "comm.pull_format=BF16"})), 7,
              1e-9)
      << "too small to be encoded";
}

TEST(FluidBound, IsNeverBelowTheComputation) {
  EXPECT_NEAR(BoundMs(ReplayJob(ProfileOf({{1, 5, 10}, {1, 5, 10}}), {})), 30, 0.01);
}

TEST(FluidBound, RefusesWhatItDoesNotKnow) {
  const ReplayProfile profile = ProfileOf({{1000, 1, 2}});
  JobConfig job = ReplayJob(profile, {});
  EXPECT_FALSE(FluidBound(job, 0).ok());
  job.mutable_sync()->set_policy(SyncConfig::ASP);
  EXPECT_FALSE(FluidBound(job, kLink).ok());
  job = ReplayJob(profile, {});
  job.mutable_replay()->clear_resolved_profile();
  EXPECT_FALSE(FluidBound(job, kLink).ok());
  EXPECT_FALSE(FluidBound(ReplayJob(profile, {"cluster.servers=2"}), kLink).ok());  // 1 segment
}

}  // namespace
}  // namespace tug
