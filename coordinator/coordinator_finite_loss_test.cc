// SPDX-License-Identifier: Apache-2.0
// Tests that a job with a loss that is not finite fails under every sync policy.

#include <limits>
#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

CoordinatorOptions WithMost(uint32_t most, SyncConfig::Policy policy = SyncConfig::BSP,
                            uint64_t steps = 100) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, steps, 0, 1);
  options.config.mutable_sync()->set_policy(policy);
  options.config.mutable_train()->set_max_nonfinite_steps(most);
  return options;
}

// Heartbeat of the worker: its step at `clock` had this loss.
HeartbeatRequest WithLoss(const JobUnderTest& job, uint64_t clock, double loss) {
  HeartbeatRequest beat = WithStep(job.ReadyBeat(2), 0, clock);
  beat.mutable_steps(0)->set_loss_sum(loss);
  return beat;
}

TEST(NonfiniteLoss, FailsTheJobUnderEverySyncPolicy) {
  for (int policy = 1; policy <= SyncConfig::Policy_MAX; ++policy) {
    SCOPED_TRACE(SyncConfig::Policy_Name(static_cast<SyncConfig::Policy>(policy)));
    JobUnderTest job(WithMost(3, static_cast<SyncConfig::Policy>(policy)));
    job.Run(1, 1);
    job.Send(WithLoss(job, 0, 5));
    job.Send(WithLoss(job, 1, kNan));
    job.Send(WithLoss(job, 2, kNan));
    EXPECT_EQ(job.coordinator().phase(), RUNNING);
    const HeartbeatReply reply = job.Send(WithLoss(job, 3, kNan));
    EXPECT_EQ(job.coordinator().phase(), FAILED);
    EXPECT_THAT(reply.failure(), HasSubstr("step 2 was the first of 3 steps in a row"));
    EXPECT_THAT(reply.failure(), HasSubstr("optimizer.learning_rate"));
  }
}

TEST(NonfiniteLoss, NowAndThenIsNoFailure) {
  JobUnderTest job(WithMost(2));
  job.Run(1, 1);
  for (uint64_t clock = 0; clock < 10; ++clock) {
    job.Send(WithLoss(job, clock, clock % 2 == 0 ? kNan : 5));
  }
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
}

// Runs a job of two steps to its end.
Phase PhaseAfterTwoSteps(uint32_t most, double first, double second) {
  JobUnderTest job(WithMost(most, SyncConfig::BSP, /*steps=*/2));
  job.Run(1, 1);
  job.Send(WithLoss(job, 0, first));
  HeartbeatRequest last = WithLoss(job, 1, second);
  last.set_finished(true);
  job.Send(last);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 2), 1, 2));
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(2, absl::OkStatus(), job.now());
  return job.coordinator().phase();
}

TEST(NonfiniteLoss, NonfiniteLossesOfWholeShortJobFailIt) {
  EXPECT_EQ(PhaseAfterTwoSteps(10, kNan, kNan), FAILED);
  EXPECT_EQ(PhaseAfterTwoSteps(10, 5, kNan), DONE);
  EXPECT_EQ(PhaseAfterTwoSteps(0, kNan, kNan), DONE) << "0: not watched";
}

}  // namespace
}  // namespace tug
