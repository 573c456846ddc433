// SPDX-License-Identifier: Apache-2.0
// Tests the summary at the end of a run.

#include "coordinator/observe/run_reporter.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class RunReporterTest : public ::testing::Test {
 protected:
  RunReporterTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    config_.mutable_train()->set_steps(24);
    config_.mutable_model()->set_family(ModelConfig::DECODER);
  }

  // Summary of a job that took `taken` steps, evaluated the last of them, and ended at `step`.
  std::string SummaryOf(uint64_t taken, uint64_t step, const std::string& continue_with = "") {
    std::string said;
    RunReporter reporter(MetricsLog::Open((root_ / "metrics.jsonl").string(), 1).value(),
                         RunExports::Open(config_, {.run_dir = root_.string()}).value(),
                         {.out = [&said](absl::string_view text) { absl::StrAppend(&said, text); },
                          .terminal = false,
                          .continue_with = continue_with},
                         root_.string(), "title", config_, absl::UnixEpoch());
    StepMetrics metrics;
    metrics.step = taken;
    metrics.loss = 1.25;
    metrics.tokens = 100;
    metrics.mean_seconds = 0.5;
    reporter.OnStep(metrics, absl::UnixEpoch());
    reporter.OnEval({.version = taken, .loss = 1.5, .targets = 10}, absl::UnixEpoch());
    said.clear();
    StatusReply status;
    status.set_phase(DONE);
    status.set_step(step);
    status.set_steps(24);
    status.set_last_checkpoint(step);
    reporter.Finish(status, 24, absl::Seconds(3));
    return said;
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "run_reporter_test";
  JobConfig config_;
};

TEST_F(RunReporterTest, SaysTheLossesOfTheLastStep) {
  const std::string said = SummaryOf(24, 24);
  EXPECT_THAT(said, HasSubstr("done: 24 of 24 steps"));
  EXPECT_THAT(said, HasSubstr("training loss 1.2500"));
  EXPECT_THAT(said, HasSubstr("validation loss 1.5000"));
  EXPECT_THAT(said, HasSubstr("next: tug sample"));
}

// A job that is stopped during a rollback ends at the checkpoint.
TEST_F(RunReporterTest, LeavesOutTheLossesOfStepsThatAreGone) {
  const std::string said = SummaryOf(24, 5);
  EXPECT_THAT(said, HasSubstr("stopped: 5 of 24 steps"));
  EXPECT_THAT(said, Not(HasSubstr("training loss")));
  EXPECT_THAT(said, Not(HasSubstr("validation loss")));
  EXPECT_THAT(said, HasSubstr("continue with: tug train --resume"));
}

// The launcher's working folder may differ from ours.
TEST_F(RunReporterTest, NamesTheLaunchersCommandWithTheWholePath) {
  const fs::path before = fs::current_path();
  fs::current_path(root_.parent_path());
  EXPECT_THAT(SummaryOf(5, 5), HasSubstr("continue with: tug train --resume run_reporter_test\n"));
  EXPECT_THAT(SummaryOf(5, 5, "tug launch job --hosts hosts"),
              HasSubstr("continue with: tug launch job --hosts hosts --resume " + root_.string()));
  fs::current_path(before);
}

TEST_F(RunReporterTest, ARecoveredRunHasItsChangedSettingsOnce) {
  const std::string path = (root_ / "metrics.jsonl").string();
  const auto report = [&](MetricsLog log, const std::vector<std::string>& changed) {
    RunReporter reporter(std::move(log),
                         RunExports::Open(config_, {.run_dir = root_.string()}).value(), {},
                         root_.string(), "title", config_, absl::UnixEpoch());
    reporter.OnSettings({5, changed});
    EXPECT_TRUE(reporter.Flush().ok());
    return reporter.history().Since(0).settings.size();
  };
  const std::vector<std::string> changed = {"train.steps 6 -> 24"};
  EXPECT_EQ(report(MetricsLog::Open(path, 2).value(), changed), 1u);
  const auto size = fs::file_size(path);
  EXPECT_EQ(report(MetricsLog::Continue(path, 2, 0).value(), changed), 1u);
  EXPECT_EQ(fs::file_size(path), size);
  EXPECT_EQ(report(MetricsLog::Open(path, 3).value(), {}), 0u);
  EXPECT_THAT(ReadLossCurve(path)->settings, ::testing::IsEmpty()) << "resumed from step 5 again";
}

}  // namespace
}  // namespace tug
