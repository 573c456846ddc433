#include "cli/scheduling_plan.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_config.h"

namespace tug {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string Error(const SchedulingArguments& arguments) {
  return std::string(PlanScheduling(arguments).status().message());
}

TEST(PlanScheduling, HasACaseForEachProfileAndRatioWithAllPolicies) {
  const auto plan = PlanScheduling({.profiles = {"vgg16", "resnet50"}, .ratios = {0.5, 2}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->cases.size(), 4u);
  EXPECT_EQ(plan->cases[1].profile, "vgg16");
  EXPECT_EQ(plan->cases[1].ratio, 2);
  EXPECT_EQ(plan->cases[1].blocks.size(), 16u);
  EXPECT_EQ(plan->cases[1].policies.size(), 3u);
  EXPECT_FALSE(plan->worked_out) << "no links without hosts";
  EXPECT_TRUE(PlanScheduling({.hosts = 6})->worked_out);
  EXPECT_FALSE(PlanScheduling({.hosts = 3})->worked_out) << "hosts that nodes share";
}

TEST(PlanScheduling, NamesTheOptionThatIsWrong) {
  EXPECT_THAT(Error({.profiles = {"alexnet"}}), HasSubstr("alexnet"));
  EXPECT_THAT(Error({.ratios = {0}}), HasSubstr("--ratios 0"));
  EXPECT_THAT(Error({.ratios = {}}), HasSubstr("--ratios"));
  EXPECT_THAT(Error({.policies = {"FIFO"}}), HasSubstr("--policies FIFO"));
  EXPECT_THAT(Error({.policies = {"scheduler_default"}}), HasSubstr("--policies"));
  EXPECT_THAT(Error({.policies = {"fifo", "auto", "fifo"}}), HasSubstr("fifo is named twice"));
  EXPECT_THAT(Error({.ratios = {1, 2, 1.0}}), HasSubstr("vgg16, ratio 1 is named twice"));
  EXPECT_THAT(Error({.workers = 0}), HasSubstr("--workers"));
  EXPECT_THAT(Error({.workers = 3'000'000'000}), HasSubstr("--workers 3000000000"));
  EXPECT_THAT(Error({.hosts = 1}), HasSubstr("--hosts 1"));
  EXPECT_THAT(Error({.hosts = 4'294'967'295}), HasSubstr("from 0 to 200"));
  EXPECT_THAT(Error({.link = "fast"}), HasSubstr("--link fast"));
  EXPECT_THAT(Error({.transfer_seconds = 0}), HasSubstr("--transfer 0"));
  EXPECT_THAT(Error({.steps = 2}), HasSubstr("--steps 2"));
}

TEST(PlanScheduling, RefusesToOverrideWhatTheReportSays) {
  EXPECT_THAT(Error({.overrides = {"comm.scheduler=FIFO"}}), HasSubstr("use --policies"));
  EXPECT_THAT(Error({.overrides = {"seed=2", "replay.time_scale=2"}}), HasSubstr("use --profiles"));
  EXPECT_THAT(Error({.overrides = {"trace.steps=0"}}), HasSubstr("--set trace.steps=0"));
  EXPECT_THAT(Error({.overrides = {"comm.push_codec.bf16={}"}}), HasSubstr("FP32"));
  EXPECT_EQ(Error({.overrides = {"comm.impair.delay_ms=1", "cluster.lanes_per_server=2"}}), "");
}

TEST(JobOverrides, MakeACompleteJobOfTheExperimentAndOfTheUser) {
  SchedulingArguments arguments{.hosts = 6, .overrides = {"comm.credit_bytes=1000000"}};
  const auto plan = PlanScheduling(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const SchedulingCase& c = plan->cases[0];
  const auto job =
      ParseJobConfig("compute: REPLAY", "job", JobOverrides(arguments, *plan, c, c.policies[1]));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->comm().scheduler(), CommConfig::PRIORITY);
  EXPECT_EQ(job->comm().credit_bytes(), 1'000'000u);
  EXPECT_EQ(job->comm().partition_bytes(), c.grain.partition_bytes);
  EXPECT_EQ(job->optimizer().clip(), OptimizerConfig::OFF);
  EXPECT_EQ(job->comm().resend_ms(), 10'000u);
  EXPECT_EQ(job->comm().impair().rate_mbit(), 0);
  EXPECT_EQ(job->train().steps(), arguments.warm_up + arguments.steps);
  // The last step is not traced, and nothing after it is measured.
  EXPECT_EQ(job->trace().first_step() + job->trace().steps(), job->train().steps());
}

TEST(JobOverrides, SlowDownWhatProcessesSendWhereThereAreNoLinks) {
  SchedulingArguments arguments{.link = "50mbit"};
  const auto plan = PlanScheduling(arguments);
  const SchedulingCase& c = plan->cases[0];
  EXPECT_THAT(JobOverrides(arguments, *plan, c, c.policies[0]),
              Contains("comm.impair.rate_mbit=50"));
}

TEST(JobOverrides, WaitLongerForAnswersThatComeLater) {
  SchedulingArguments arguments{.ratios = {2}, .hosts = 6, .transfer_seconds = 60};
  const auto plan = PlanScheduling(arguments);
  const SchedulingCase& c = plan->cases[0];
  EXPECT_THAT(JobOverrides(arguments, *plan, c, c.policies[0]), Contains("comm.resend_ms=180000"));
}

TEST(MeasuredStepsOf, LeavesOutTheTrialsOfTheTuner) {
  SchedulingArguments arguments{.warm_up = 4, .steps = 10};
  auto plan = PlanScheduling(arguments);
  const auto first = [&](const char* policy) {
    const MeasuredSteps measured = MeasuredStepsOf(arguments, *plan, plan->cases[0], policy);
    EXPECT_EQ(measured.last, measured.first + 9);
    return measured.first;
  };
  EXPECT_EQ(first("fifo"), 5u);
  EXPECT_EQ(first("auto"), 5u + 20 * (5 + 3));
  arguments.transfer_seconds = 0.01;  // at ratio 0.5 a step of 20 ms: a heartbeat is 10 of them
  plan = PlanScheduling(arguments);
  EXPECT_GE(first("auto"), 5u + 20 * (5 + 3 + 29));
}

TEST(MeasuredStepsOf, TakesTheTunerOfTheJob) {
  const std::string path = testing::TempDir() + "/tuner.textproto";
  std::ofstream(path) << "comm { tuner { trials: 7 steps_per_trial: 2 } }";
  SchedulingArguments arguments{.job_file = path, .overrides = {"comm.tuner.steps_per_trial=3"}};
  const auto plan = PlanScheduling(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(MeasuredStepsOf(arguments, *plan, plan->cases[0], "auto").first, 5u + 7 * (3 + 3));
}

}  // namespace
}  // namespace tug
