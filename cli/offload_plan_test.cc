#include "cli/offload_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_config.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const CpuBudget kHost{.usable = 4};

JobConfig ConfigOf(const OffloadArguments& a, const OffloadPlan& plan, OffloadKind kind) {
  const auto config = ParseJobConfig(plan.training.job_text, "the job",
                                     JobOverrides(a, plan, kind, "/tmp/text.txt"));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : JobConfig();
}

TEST(OffloadPlan, CasesDifferInWhatAnUpdateAndAForwardPassWaitFor) {
  const OffloadArguments a{.servers = 3, .warm_up = 4, .steps = 6};
  const auto plan = PlanOffload(a, kHost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->cases.size(), 3u);
  JobConfig offload = ConfigOf(a, *plan, OffloadKind::kOffload);
  JobConfig overlapped = ConfigOf(a, *plan, OffloadKind::kOverlapped);
  EXPECT_EQ(offload.optimizer().clip(), OptimizerConfig::GLOBAL);
  EXPECT_EQ(offload.comm().scheduler(), CommConfig::FIFO);
  EXPECT_EQ(overlapped.optimizer().clip(), OptimizerConfig::OFF);
  EXPECT_EQ(overlapped.comm().scheduler(), CommConfig::BYTESCHEDULER);
  EXPECT_EQ(offload.train().steps(), 10u);
  EXPECT_EQ(offload.trace().first_step(), 5u);
  EXPECT_EQ(offload.trace().steps(), 6u);
  EXPECT_EQ(offload.cluster().servers(), 3u);
  EXPECT_GT(offload.cluster().compute_threads(), 0u) << "as many in all cases";
  EXPECT_EQ(offload.data().path(), "/tmp/text.txt");
  // Nothing else.
  offload.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  offload.mutable_comm()->set_scheduler(CommConfig::BYTESCHEDULER);
  EXPECT_EQ(FirstDifference(offload, overlapped), "");
  EXPECT_EQ(FirstDifference(ConfigOf(a, *plan, OffloadKind::kPlain), overlapped), "");
}

TEST(OffloadPlan, RefusesWhatTheReportSaysIsOtherwise) {
  const auto refused = [](const OffloadArguments& a) {
    const auto plan = PlanOffload(a, kHost);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(plan.status().message());
  };
  EXPECT_THAT(refused({.cases = {"plain", "cpu"}}),
              AllOf(HasSubstr("--cases cpu"), HasSubstr("overlapped")));
  EXPECT_THAT(refused({.cases = {"plain", "plain"}}), HasSubstr("named twice"));
  EXPECT_THAT(refused({.warm_up = 0}), HasSubstr("--warm-up 0"));
  EXPECT_THAT(refused({.steps = 2}), HasSubstr("--steps 2"));
  EXPECT_THAT(refused({.servers = 0}), HasSubstr("--servers 0"));
  EXPECT_THAT(refused({.overrides = {"optimizer.clip=OFF"}}), HasSubstr("--cases"));
  EXPECT_THAT(refused({.overrides = {"comm.scheduler=FIFO"}}), HasSubstr("--cases"));
  EXPECT_THAT(refused({.overrides = {"compute=REPLAY"}}), HasSubstr("compute"));
}

}  // namespace
}  // namespace tug
