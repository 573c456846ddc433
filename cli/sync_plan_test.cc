#include "cli/sync_plan.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_config.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Error(const SyncArguments& arguments) {
  return std::string(PlanSync(arguments).status().message());
}

// The configuration of a part's job.
JobConfig ConfigOf(const SyncArguments& a, const SyncPlan& plan, const PlannedPart& part,
                   const std::string& name) {
  for (const SyncJob& job : part.jobs) {
    if (job.name != name) continue;
    const auto config =
        ParseJobConfig(part.job_text, name, JobOverrides(a, plan, part, job, "text.txt"));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(JobConfig());
  }
  ADD_FAILURE() << "no job " << name;
  return {};
}

TEST(PlanSync, HasAJobForEachPartStragglerAndMode) {
  const auto plan = PlanSync({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->parts.size(), 2u);
  for (const PlannedPart& part : plan->parts) {
    EXPECT_EQ(part.jobs.size(), 18u);
    EXPECT_EQ(part.jobs[0].straggler, StragglerKind::kNone);
    EXPECT_EQ(part.jobs[1].mode.name, "ssp(1)");
  }
  EXPECT_TRUE(plan->parts[0].part.replay);
  EXPECT_FALSE(plan->parts[1].part.replay);
  EXPECT_NEAR(plan->scale.compute_seconds, 0.1, 1e-9);
  EXPECT_EQ(plan->link, "");
}

TEST(PlanSync, JobsAreOfTheirModeAndStraggler) {
  const SyncArguments a;
  const auto plan = PlanSync(a);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlannedPart& part = plan->parts[0];
  const JobConfig slow = ConfigOf(a, *plan, part, "throughput-persistent-ssp4");
  EXPECT_EQ(slow.compute(), JobConfig::REPLAY);
  EXPECT_EQ(slow.sync().policy(), SyncConfig::SSP);
  EXPECT_EQ(slow.sync().staleness(), 4u);
  EXPECT_EQ(slow.straggler().slowdown(), 4);
  EXPECT_EQ(slow.straggler().pause_probability(), 0);
  EXPECT_EQ(slow.train().steps(), 68u);
  const JobConfig pauses = ConfigOf(a, *plan, part, "throughput-pauses-backup1");
  EXPECT_EQ(pauses.sync().policy(), SyncConfig::BACKUP);
  EXPECT_EQ(pauses.straggler().slowdown(), 1);
  EXPECT_EQ(pauses.straggler().pause_ms(), 200) << "two steps of 100 ms";
  EXPECT_EQ(pauses.trace().steps(), 0u);
  const JobConfig local = ConfigOf(a, *plan, part, "throughput-pauses-local16");
  EXPECT_NEAR(local.straggler().pause_probability(), 16 * 0.05, 1e-9) << "those of 16 batches";
  EXPECT_EQ(local.straggler().pause_ms(), 200);
}

TEST(PlanSync, LocalStepsDivideWhatIsCountedInBatches) {
  const SyncArguments a;
  const auto plan = PlanSync(a);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const JobConfig bsp = ConfigOf(a, *plan, plan->parts[1], "learning-none-bsp");
  const JobConfig local = ConfigOf(a, *plan, plan->parts[1], "learning-none-local16");
  EXPECT_EQ(local.sync().local_steps(), 16u);
  EXPECT_EQ(bsp.train().steps(), 640u);
  EXPECT_EQ(local.train().steps(), 40u);
  EXPECT_EQ(local.train().eval_interval() * 16, bsp.train().eval_interval());
  EXPECT_EQ(local.optimizer().decay_steps(), 40u);
  EXPECT_EQ(local.optimizer().warmup_steps() * 16, bsp.optimizer().warmup_steps());
}

TEST(PlanSync, OneJobOfEachPolicyBesideTheSlowWorkerIsTraced) {
  const auto plan = PlanSync({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> traced;
  for (const PlannedPart& part : plan->parts) {
    for (const SyncJob& job : part.jobs) {
      if (job.traced_steps > 0) traced.push_back(job.name);
    }
  }
  EXPECT_THAT(traced,
              ::testing::ElementsAre("throughput-persistent-bsp", "throughput-persistent-ssp1",
                                     "throughput-persistent-asp", "throughput-persistent-backup1"));
  EXPECT_EQ(plan->parts[0].jobs[6].traced_steps, 3 * 4 + 4u) << "what others do in three slow ones";
}

TEST(PlanSync, ALinkScalesTheReplayAndIsImpairedWhereThereAreNoHosts) {
  SyncArguments a{.parts = {"throughput"}, .link = "100mbit"};
  auto plan = PlanSync(a);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NEAR(plan->scale.transfer_seconds, 0.025, 1e-9);
  EXPECT_NEAR(plan->scale.compute_seconds, 0.1, 1e-9);
  const JobConfig config = ConfigOf(a, *plan, plan->parts[0], "throughput-none-bsp");
  EXPECT_EQ(config.comm().impair().rate_mbit(), 100);
  EXPECT_FALSE(config.comm().shared_memory());
  a = {.parts = {"learning"}, .link = "100mbit"};
  plan = PlanSync(a);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ConfigOf(a, *plan, plan->parts[0], "learning-none-bsp").comm().impair().rate_mbit(),
            100);
  a = {.parts = {"throughput"}, .hosts = 6};
  plan = PlanSync(a);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->link, "200mbit");
  EXPECT_EQ(ConfigOf(a, *plan, plan->parts[0], "throughput-none-bsp").comm().impair().rate_mbit(),
            0);
}

TEST(PlanSync, NamesTheOptionThatIsWrong) {
  EXPECT_THAT(Error({.parts = {"speed"}}), HasSubstr("--parts speed"));
  EXPECT_THAT(Error({.parts = {"learning", "learning"}}), HasSubstr("--parts learning"));
  EXPECT_THAT(Error({.modes = {"bsp", "hogwild"}}), HasSubstr("--modes hogwild"));
  EXPECT_THAT(Error({.modes = {"ssp:1", "ssp(1)"}}), HasSubstr("named twice"));
  EXPECT_THAT(Error({.stragglers = {"sometimes"}}), HasSubstr("--stragglers sometimes"));
  EXPECT_THAT(Error({.stragglers = {"pauses"}}), HasSubstr("name none first"));
  EXPECT_EQ(Error({.parts = {"throughput"}, .stragglers = {"pauses"}}), "");
  EXPECT_THAT(Error({.workers = 1}), HasSubstr("--workers 1"));
  EXPECT_THAT(Error({.modes = {"backup:4"}}), HasSubstr("sync.backups"));
  EXPECT_THAT(Error({.hosts = 1}), HasSubstr("--hosts 1"));
  EXPECT_THAT(Error({.slowdown = 0.5}), HasSubstr("--slowdown 0.5"));
  EXPECT_THAT(Error({.profile = "alexnet"}), HasSubstr("alexnet"));
  EXPECT_THAT(Error({.overrides = {"sync.policy=ASP"}}), HasSubstr("--modes"));
  EXPECT_THAT(Error({.overrides = {"straggler.slowdown=2"}}), HasSubstr("--slowdown"));
  EXPECT_THAT(Error({.job_file = "/nowhere"}), HasSubstr("/nowhere"));
}

TEST(PlanSync, AReplayIsNoTraining) {
  const std::string path = ::testing::TempDir() + "/replay.textproto";
  std::ofstream(path) << "compute: REPLAY replay { profile: 'vgg16' }";
  EXPECT_THAT(Error({.job_file = path}), AllOf(HasSubstr(path), HasSubstr("--replay")));
}

}  // namespace
}  // namespace tug
