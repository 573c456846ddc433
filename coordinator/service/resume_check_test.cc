// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/resume_check.h"

#include "absl/strings/str_cat.h"
#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ResumeCheckTest : public ::testing::Test {
 protected:
  ResumeCheckTest() {
    config_.mutable_data()->set_path("text.txt");
    FillDefaults(config_, 4);
    config_.mutable_data()->set_resolved_fingerprint(99);
    blocks_.add_blocks()->set_name("embedding");
    *manifest_.mutable_config() = config_;
    *manifest_.mutable_blocks() = blocks_;
    manifest_.set_version(25);
  }
  std::string Refusal() const {
    const absl::Status status = CheckResume(manifest_, "run/step-25", config_, blocks_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  }

  JobConfig config_;
  BlockTable blocks_;
  Manifest manifest_;
};

TEST_F(ResumeCheckTest, AllowsAnotherSpreadOfTheWork) {
  EXPECT_TRUE(CheckResume(manifest_, "run", config_, blocks_).ok());
  config_.mutable_cluster()->set_servers(3);
  config_.mutable_cluster()->set_lanes_per_server(4);
  config_.mutable_cluster()->set_compute_threads(9);
  config_.mutable_comm()->set_segment_elements(4096);
  config_.mutable_train()->set_steps(5000);
  config_.mutable_checkpoint()->set_interval(7);
  config_.mutable_data()->set_path("moved.txt");
  EXPECT_TRUE(CheckResume(manifest_, "run", config_, blocks_).ok());
}

TEST_F(ResumeCheckTest, ListsChangedSettings) {
  config_.mutable_cluster()->set_compute_threads(9);
  config_.mutable_trace()->set_steps(5);
  EXPECT_THAT(ChangedSettings(manifest_, config_), IsEmpty());
  const uint64_t before = config_.train().steps();
  config_.mutable_train()->set_steps(5000);
  const std::string steps = absl::StrCat("train.steps ", before, " -> 5000");
  EXPECT_THAT(ChangedSettings(manifest_, config_), ElementsAre(steps));
  config_.mutable_checkpoint()->set_interval(7);
  EXPECT_THAT(ChangedSettings(manifest_, config_),
              ElementsAre(HasSubstr("checkpoint.interval "), steps));
}

TEST_F(ResumeCheckTest, NamesTheFieldThatDiffers) {
  config_.mutable_model()->set_width(256);
  config_.set_seed(8);
  EXPECT_EQ(Refusal(),
            "cannot resume from run/step-25: model.width is 128 in the checkpoint but 256 in this "
            "job; pass --set model.width=128, or start a new run without --resume");
}

TEST_F(ResumeCheckTest, RefusesAPolicyByWhichVersionsCountSomethingElse) {
  config_.mutable_sync()->set_policy(SyncConfig::BACKUP);
  EXPECT_TRUE(CheckResume(manifest_, "run", config_, blocks_).ok());
  config_.mutable_sync()->set_policy(SyncConfig::ASP);
  EXPECT_THAT(Refusal(), HasSubstr("sync.policy is BSP in the checkpoint but ASP in this job"));
  manifest_.mutable_config()->mutable_sync()->set_policy(SyncConfig::SSP);
  EXPECT_TRUE(CheckResume(manifest_, "run", config_, blocks_).ok());
  config_.mutable_comm()->set_segment_elements(4096);
  EXPECT_THAT(Refusal(),
              HasSubstr("comm.segment_elements is 262144 in the checkpoint but 4096 in this job"));
}

TEST_F(ResumeCheckTest, RefusesStateOfAnotherOptimizer) {
  config_.mutable_sync()->set_local_steps(16);
  EXPECT_THAT(Refusal(), HasSubstr("sync.local_steps is 1 in the checkpoint but 16 in this job"));
  config_.mutable_optimizer()->set_algorithm(OptimizerConfig::SGD);
  EXPECT_THAT(Refusal(),
              HasSubstr("optimizer.algorithm is ADAMW in the checkpoint but SGD in this job"));
}

TEST_F(ResumeCheckTest, RefusesAnotherText) {
  config_.mutable_data()->set_resolved_fingerprint(100);
  EXPECT_THAT(Refusal(), HasSubstr("set data.path to the same"));
}

TEST_F(ResumeCheckTest, ComparesSettingsBeforeTheTextIsRead) {
  JobConfig unresolved = config_;
  unresolved.mutable_data()->clear_resolved_fingerprint();
  EXPECT_TRUE(CheckResumedSettings(manifest_, "run/step-25", unresolved).ok());
  unresolved.mutable_data()->set_tokenizer(DataConfig::CHARACTER);
  EXPECT_THAT(
      std::string(CheckResumedSettings(manifest_, "run/step-25", unresolved).message()),
      HasSubstr("data.tokenizer is BYTE in the checkpoint but CHARACTER in this job; pass --set "));
}

TEST_F(ResumeCheckTest, RefusesOtherVirtualWorkersBatchSeedOrLayout) {
  config_.mutable_cluster()->set_virtual_workers(4);
  EXPECT_THAT(Refusal(), HasSubstr("cluster.virtual_workers"));
  *config_.mutable_cluster() = manifest_.config().cluster();
  config_.mutable_train()->set_global_batch(16);
  EXPECT_THAT(Refusal(), HasSubstr("train.global_batch"));
  *config_.mutable_train() = manifest_.config().train();
  blocks_.add_blocks();
  EXPECT_THAT(Refusal(), HasSubstr("parameter layout"));
}

TEST_F(ResumeCheckTest, TellsAReplayFromATrainingAndNamesWhatMakesItsBlocks) {
  config_.set_compute(JobConfig::REPLAY);
  EXPECT_THAT(Refusal(), HasSubstr("compute is CPU in the checkpoint but REPLAY in this job"));
  manifest_.mutable_config()->set_compute(JobConfig::REPLAY);
  blocks_.add_blocks();
  EXPECT_THAT(Refusal(), HasSubstr("the same replay.profile and replay.size_scale"));
}

TEST_F(ResumeCheckTest, ReadsACheckpointFromBeforeAFieldExisted) {
  manifest_.mutable_config()->clear_compute();
  EXPECT_TRUE(CheckResume(manifest_, "run", config_, blocks_).ok());
}

TEST_F(ResumeCheckTest, SaysThatNoStepIsLeft) {
  config_.mutable_train()->set_steps(25);
  const absl::Status status = CheckResume(manifest_, "run/step-25", config_, blocks_);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("run/step-25 has all 25 steps of train.steps: the job is complete; to "
                        "continue training, raise it with --set train.steps=50"));
}

}  // namespace
}  // namespace tug
