#include "cli/experiment_scheduling.h"

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
  EXPECT_THAT(Error({.workers = 0}), HasSubstr("--workers"));
  EXPECT_THAT(Error({.hosts = 1}), HasSubstr("--hosts 1"));
  EXPECT_THAT(Error({.link = "fast"}), HasSubstr("--link fast"));
  EXPECT_THAT(Error({.transfer_seconds = 0}), HasSubstr("--transfer 0"));
  EXPECT_THAT(Error({.steps = 2}), HasSubstr("--steps 2"));
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

TEST(FirstMeasured, LeavesOutTheTrialsOfTheTuner) {
  const SchedulingArguments arguments{.warm_up = 4};
  EXPECT_EQ(FirstMeasured(arguments, "fifo"), 5u);
  EXPECT_GT(FirstMeasured(arguments, "auto"), 4u + 20 * 5);
}

}  // namespace
}  // namespace tug
