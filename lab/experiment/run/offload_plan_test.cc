// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/offload_plan.h"

#include <fstream>
#include <string>

#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  // Nothing else differs.
  offload.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  offload.mutable_comm()->set_scheduler(CommConfig::BYTESCHEDULER);
  EXPECT_EQ(Fingerprint(offload), Fingerprint(overlapped));
  EXPECT_EQ(Fingerprint(ConfigOf(a, *plan, OffloadKind::kPlain)), Fingerprint(overlapped));
}

// The experiment overrides settings of the job file that contradict it.
TEST(OffloadPlan, OverridesJobFileWithLosslessBspOnServers) {
  constexpr const char* kSynchronous =
      "sync { local_steps: 4 }\nplacement { kind: ZERO3 }\n"
      "comm { push_codec { int8 {} error_feedback: true } pull_format: CHANGES }\n";
  constexpr const char* kStale = "sync { policy: SSP record: ORDER }\ncomm { pull_format: INT8 }\n";
  for (const char* const says : {kSynchronous, kStale, "exchange: ALL_REDUCE\n"}) {
    const std::string path = ::testing::TempDir() + "/job.textproto";
    std::ofstream(path) << "name: \"job\" data { path: \"text.txt\" tokenizer: CHARACTER }\n"
                           "model { layers: 1 width: 32 heads: 2 context: 16 }\n"
                           "train { steps: 9 global_batch: 4 precision: BF16 }\n"
                        << says;
    const OffloadArguments a{.job_file = path};
    const auto plan = PlanOffload(a, kHost);
    ASSERT_TRUE(plan.ok()) << says << plan.status();
    for (const OffloadKind kind : plan->cases) {
      const JobConfig config = ConfigOf(a, *plan, kind);
      EXPECT_EQ(config.sync().policy(), SyncConfig::BSP);
      EXPECT_EQ(config.sync().local_steps(), 1u);
      EXPECT_EQ(config.sync().record(), SyncConfig::OFF);
      EXPECT_EQ(config.placement().kind(), PlacementConfig::SERVERS);
      EXPECT_EQ(config.exchange(), JobConfig::PUSH_PULL);
      EXPECT_EQ(config.comm().push_codec().codec_case(), PushCodecConfig::CODEC_NOT_SET);
      EXPECT_EQ(config.comm().pull_format(), CommConfig::BF16) << "what it computes in";
    }
  }
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
  EXPECT_THAT(refused({.overrides = {"comm.push_codec.int8={}"}}), HasSubstr("not encoded"));
  EXPECT_THAT(refused({.overrides = {"comm.pull_format=INT8"}}), HasSubstr("computes in"));
  EXPECT_THAT(refused({.overrides = {"compute=REPLAY"}}), HasSubstr("compute"));
}

}  // namespace
}  // namespace tug
