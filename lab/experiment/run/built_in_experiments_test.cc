// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/built_in_experiments.h"

#include <string>

#include "gtest/gtest.h"
#include "lab/experiment/plan/experiment_plan.h"
#include "lab/experiment/results/scheduled_step.h"
#include "model/replay/replay_profile.h"

namespace tug {
namespace {

// They need no other file, so that they run anywhere.
TEST(BuiltInExperiments, AreExperimentsOfTheirName) {
  ASSERT_FALSE(BuiltInExperimentNames().empty());
  for (const std::string& name : BuiltInExperimentNames()) {
    const auto text = BuiltInExperiment(name);
    ASSERT_TRUE(text.has_value()) << name;
    const auto plan =
        PlanExperiment({.text = *text, .name = name, .made_up_text_path = "text.txt"});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->file.name(), name);
    EXPECT_FALSE(plan->file.has_job_file()) << name;
    EXPECT_GT(plan->cases.size(), 1u) << name;
  }
  EXPECT_FALSE(BuiltInExperiment("nothing").has_value());
}

// Ratios that result from the file's sizes and times, over loopback and on a testbed.
TEST(BuiltInExperiments, SchedulingHasTheRatiosOfItsLabels) {
  const auto plan =
      PlanExperiment({.text = *BuiltInExperiment("scheduling"), .name = "scheduling"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Place testbed;
  testbed.mutable_testbed()->set_link("200mbit");
  for (const PlannedCase& one : plan->cases) {
    JobConfig job = one.config;
    const ReplayConfig& replay = job.replay();
    const auto profile = LoadReplayProfile(replay.profile());
    ASSERT_TRUE(profile.ok()) << profile.status();
    *job.mutable_replay()->mutable_resolved_profile() =
        ScaledReplayProfile(*profile, replay.time_scale(), replay.size_scale());
    for (const Place& place : {one.place, testbed}) {
      const LinkLoad load = LinkLoadOf(job, place);
      EXPECT_NEAR(load.transfer_seconds.value(), 0.4, 1e-4) << one.name;
      EXPECT_NEAR(load.transfer_seconds.value() / load.compute_seconds,
                  std::stod(plan->axes[1].labels[one.values[1]]), 1e-3)
          << one.name;
    }
  }
}

}  // namespace
}  // namespace tug
