// SPDX-License-Identifier: Apache-2.0
#include "prediction/policy_note.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prediction/scheduling_test_support.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// PRIORITY takes 120 ms and FIFO 100. `explains`: the cause without which PRIORITY takes `seconds`;
// all others change nothing.
PolicyLoss Loss(const LossCause* explains, double seconds, double other_seconds) {
  PolicyLoss loss{.policy = "priority", .other = "fifo", .seconds = 0.12, .other_seconds = 0.1};
  for (const LossCause& cause : kLossCauses) {
    loss.without.push_back({&cause, 0.12, 0.1});
    if (&cause == explains) loss.without.back() = {&cause, seconds, other_seconds};
  }
  return loss;
}

TEST(WhyItLoses, NamesTheCauseWithoutWhichThePolicyIsAsFast) {
  for (const LossCause& cause : kLossCauses) {
    const std::string why = WhyItLoses(Loss(&cause, 0.09, 0.095));
    EXPECT_THAT(why, AllOf(HasSubstr("priority is 20.0 ms slower than fifo because "),
                           HasSubstr(cause.why), HasSubstr(cause.without)));
    EXPECT_THAT(why, HasSubstr("it takes 90.0 ms, and fifo 95.0 ms"));
  }
}

TEST(WhyItLoses, PrefersAPropertyOfThePolicyToOneOfTheHosts) {
  PolicyLoss loss = Loss(nullptr, 0, 0);
  for (PolicyLoss::Without& without : loss.without) without.seconds = 0.095;
  loss.without.back().seconds = 0.08;
  EXPECT_THAT(WhyItLoses(loss), HasSubstr(kLossCauses.front().why));
}

TEST(WhyItLoses, NamesACauseOfHalfTheLossIfThereIsNoBetterOne) {
  const LossCause& cause = kLossCauses.back();
  EXPECT_THAT(WhyItLoses(Loss(&cause, 0.11, 0.1)), HasSubstr(cause.why));
  EXPECT_THAT(WhyItLoses(Loss(&cause, 0.115, 0.1)), HasSubstr("no single cause"));
}

TEST(WhyItLoses, IsNotExplainedByAChangeThatHelpsBothPolicies) {
  EXPECT_THAT(WhyItLoses(Loss(&kLossCauses[1], 0.08, 0.06)), HasSubstr("no single cause"));
}

TEST(WhyNoneGains, KnowsThreeReasons) {
  const SchedulingPrediction bound{.step_seconds = 0.08};
  const auto why = [&](double compute_seconds) {
    return WhyNoneGains("fifo",
                        {.step_seconds = 0.1,
                         .compute_seconds = compute_seconds,
                         .exposed_seconds = 0.1 - compute_seconds},
                        bound);
  };
  EXPECT_THAT(why(0.099), HasSubstr("hidden already, except 1.0 of 100.0 ms"));
  EXPECT_THAT(why(0.004), HasSubstr("computation, which is only 4.0 of 100.0 ms"));
  EXPECT_THAT(why(0.05), HasSubstr("it takes 100.0 ms, and the bound of all orders is 80.0 ms"));
}

// A late huge block: whole, it holds up the urgent ones of workers that have drifted apart.
TEST(RemoveCauses, SimulatesBothPoliciesWithoutEachCause) {
  const JobConfig job = ReplayJob(
      ShippedProfile("vgg16", 0.015),
      {"cluster.workers=4", "cluster.servers=2", "comm.segment_elements=16384",
       "comm.partition_bytes=65536", "comm.credit_bytes=262144", "comm.pull_credit_bytes=262144"});
  const SimulatedHosts hosts = TestbedHosts(2 * 4 * 0.015 * 138357544 / 0.2965);
  const auto without = RemoveCauses(job, hosts, CommConfig::PRIORITY, CommConfig::FIFO);
  ASSERT_TRUE(without.ok()) << without.status();
  ASSERT_EQ(without->size(), kLossCauses.size());
  const auto seconds = [&](CommConfig::Scheduler scheduler) {
    JobConfig changed = job;
    changed.mutable_comm()->set_scheduler(scheduler);
    return PredictScheduling(changed, hosts)->step_seconds;
  };
  EXPECT_EQ(without->front().seconds, seconds(CommConfig::BYTESCHEDULER)) << "not whole blocks";
  EXPECT_EQ(without->front().other_seconds, seconds(CommConfig::FIFO));
  const auto even = std::find_if(without->begin(), without->end(), [](const auto& pair) {
    return pair.cause->without == std::string("with even shares");
  });
  ASSERT_NE(even, without->end());
  EXPECT_LT(even->seconds, seconds(CommConfig::PRIORITY));
  const auto cut = RemoveCauses(job, hosts, CommConfig::BYTESCHEDULER, CommConfig::FIFO);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->front().cause->why, Not(HasSubstr("whole blocks")));
}

}  // namespace
}  // namespace tug
