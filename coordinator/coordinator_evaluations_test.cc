// SPDX-License-Identifier: Apache-2.0
// Tests evaluations: early stopping, and the best checkpoint.

#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

HeartbeatRequest WithEval(HeartbeatRequest beat, uint64_t version, double loss) {
  EvalReport* eval = beat.add_evals();
  eval->set_version(version);
  eval->set_loss_sum(4 * loss);
  eval->set_targets(4);
  eval->set_correct(3);
  return beat;
}

CoordinatorOptions WithPatience(uint32_t patience) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, 100, 0, 1);
  options.config.mutable_train()->set_patience(patience);
  options.config.mutable_train()->set_eval_interval(10);
  options.config.mutable_checkpoint()->set_keep_best(true);
  return options;
}

TEST(Evaluations, EndTheJobInOrderWhenTheyNoLongerImprove) {
  JobUnderTest job(WithPatience(2));
  job.Run(1, 1);
  const HeartbeatRequest beat = WithStep(job.ReadyBeat(2), 0, 31);
  for (const auto& [version, loss] : {std::pair{10, 3.0}, {20, 2.0}, {30, 2.5}}) {
    EXPECT_FALSE(job.Send(WithEval(beat, static_cast<uint64_t>(version), loss)).pause());
  }
  const auto evals = job.Take<EvalCompleted>();
  ASSERT_EQ(evals.size(), 3u);
  EXPECT_DOUBLE_EQ(evals[0].metrics.accuracy, 0.75);
  HeartbeatRequest last = WithEval(WithStep(job.ReadyBeat(2), 0, 41), 40, 2.0);
  EXPECT_TRUE(job.Send(last).pause()) << "as after tug stop";
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(
      notices[0].text,
      HasSubstr("the last 2 evaluations did not improve on step 20 (validation loss 2.0000)"));
  last.set_pausing(true);
  EXPECT_EQ(job.Send(last).final_version(), 42u);
  const StatusReply status = job.coordinator().OnStatus(job.now());
  EXPECT_TRUE(status.stopped_early());
  EXPECT_EQ(status.best().version(), 20u);
  EXPECT_EQ(status.best().loss(), 2.0);
}

TEST(Evaluations, EarlierEvaluationsOfResumedRunCount) {
  CoordinatorOptions options = WithPatience(2);
  options.start.version = 20;
  options.past_evals.resize(2);
  options.past_evals[0].version = 10;
  options.past_evals[0].loss = 1;
  options.past_evals[1].version = 20;
  options.past_evals[1].loss = 2;
  JobUnderTest job(options);
  job.Run(1, 1);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).best().version(), 10u);
  EXPECT_TRUE(job.Send(WithEval(WithStep(job.ReadyBeat(2), 0, 31), 30, 1.5)).pause());
}

TEST(Evaluations, NonfiniteEvaluationsEndTheJobAndNameTheRemedy) {
  JobUnderTest job(WithPatience(2));
  job.Run(1, 1);
  const HeartbeatRequest beat = WithStep(job.ReadyBeat(2), 0, 21);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(job.Send(WithEval(beat, 10, nan)).pause());
  EXPECT_TRUE(job.Send(WithEval(beat, 20, nan)).pause());
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text,
            "the job stops early (train.patience): none of 2 evaluations had a finite loss; lower "
            "optimizer.learning_rate");
  EXPECT_TRUE(job.coordinator().OnStatus(job.now()).stopped_early());
  EXPECT_FALSE(job.coordinator().OnStatus(job.now()).has_best());
}

TEST(Evaluations, OverTheWholeSplitInTheRunThatGoesOnAreNoMeasureForSampledOnes) {
  CoordinatorOptions options = WithPatience(1);
  options.start.version = 10;
  options.past_evals = {{.version = 10, .loss = 3}, {.version = 10, .loss = 1, .final = true}};
  JobUnderTest job(options);
  job.Run(1, 1);
  EXPECT_FALSE(job.Send(WithEval(WithStep(job.ReadyBeat(2), 0, 21), 20, 2.5)).pause());
}

TEST(Evaluations, TheNewBestStandsBeforeTheNextCommit) {
  JobUnderTest job(WithPatience(0));
  job.Run(1, 1);
  HeartbeatRequest parts = job.ReadyBeat(1);
  for (const uint64_t version : {10, 20, 30}) {
    parts = WithPart(WithPart(parts, 0, version), 1, version);
  }
  job.Send(WithEval(WithStep(job.ReadyBeat(2), 0, 31), 10, 3));
  job.Send(parts);
  auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u) << "one at a time";
  EXPECT_EQ(commits[0].manifest.version(), 10u);

  job.coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job.now());
  const std::vector<Action> actions = job.coordinator().TakeActions();
  ASSERT_EQ(actions.size(), 2u);
  ASSERT_TRUE(std::holds_alternative<NewBestAction>(actions[0]));
  EXPECT_EQ(std::get<NewBestAction>(actions[0]).best.version, 10u);
  ASSERT_TRUE(std::holds_alternative<CommitCheckpointAction>(actions[1]));
  EXPECT_TRUE(std::get<CommitCheckpointAction>(actions[1]).held.empty());

  job.coordinator().OnCheckpointCommitted(20, absl::OkStatus(), job.now());
  commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].held, std::vector<uint64_t>{20}) << "its evaluation is still to come";
}

TEST(Evaluations, AJobThatFailsEndsAfterTheCommitsThatAreWhole) {
  JobUnderTest job(WithPatience(0));
  job.Run(1, 1);
  HeartbeatRequest parts = WithPart(WithPart(job.ReadyBeat(1), 0, 10), 1, 10);
  job.Send(WithPart(WithPart(parts, 0, 20), 1, 20));
  job.coordinator().OnTrouble("the disk is gone", job.now());
  job.Pass(absl::Minutes(1));
  std::vector<Action> actions = job.coordinator().TakeActions();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<CommitCheckpointAction>(actions[0]));
  job.coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job.now());
  actions = job.coordinator().TakeActions();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<CommitCheckpointAction>(actions[0]));
  job.coordinator().OnCheckpointCommitted(20, absl::OkStatus(), job.now());
  EXPECT_EQ(job.Take<JobEnded>().size(), 1u);
}

TEST(Evaluations, ChooseTheBestCheckpoint) {
  JobUnderTest job(WithPatience(0));
  job.Run(1, 1);
  const HeartbeatRequest beat = WithStep(job.ReadyBeat(2), 0, 31);
  job.Send(WithEval(beat, 10, 3));
  EXPECT_TRUE(job.Take<NewBestAction>().empty());
  job.coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job.now());
  auto best = job.Take<NewBestAction>();
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].best.version, 10u);
  EXPECT_EQ(best[0].best.loss, 3);
  job.coordinator().OnCheckpointCommitted(20, absl::OkStatus(), job.now());
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 30), 1, 30));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].held, std::vector<uint64_t>{20}) << "may yet be the best";
  job.Send(WithEval(beat, 20, 3.5));
  EXPECT_TRUE(job.Take<NewBestAction>().empty());
}

}  // namespace
}  // namespace tug
