// SPDX-License-Identifier: Apache-2.0
// Tests checkpoints of jobs with error feedback, and residuals when nodes are lost.

#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Server 1 with two lanes, workers 2 and 3 with two virtual workers each.
class CoordinatorResidualsTest : public ::testing::Test {
 protected:
  static CoordinatorOptions Options() {
    CoordinatorOptions options = JobUnderTest::Options(1, 2, 10, 0, 4);
    options.config.mutable_fault()->set_max_rollbacks(1);
    PushCodecConfig& codec = *options.config.mutable_comm()->mutable_push_codec();
    codec.mutable_top_k();
    codec.set_error_feedback(true);
    return options;
  }
  static HeartbeatRequest WithLanes(HeartbeatRequest beat, uint64_t version) {
    return WithPart(WithPart(std::move(beat), 0, version), 1, version);
  }
  static HeartbeatRequest WithResidual(HeartbeatRequest beat, uint32_t virtual_worker,
                                       uint64_t version, bool file = true) {
    CheckpointPart* part = beat.add_parts();
    part->set_virtual_worker(virtual_worker);
    part->set_version(version);
    if (file) part->set_file("residual-" + std::to_string(virtual_worker));
    return beat;
  }
  static HeartbeatRequest WithClocks(HeartbeatRequest beat, uint32_t view,
                                     const std::vector<uint64_t>& clocks) {
    beat.set_clocks_of_view(view);
    beat.mutable_clocks()->Assign(clocks.begin(), clocks.end());
    return beat;
  }
  static HeartbeatRequest In(HeartbeatRequest beat, uint32_t view) {
    beat.set_known_view(view);
    return beat;
  }
  static void Lose(JobUnderTest& job, uint32_t node) {
    job.coordinator().OnGone(node, kJob, job.now());
  }
  static std::string Notices(JobUnderTest& job) {
    std::string all;
    for (const NoticeAction& notice : job.Take<NoticeAction>()) all += notice.text + "\n";
    return all;
  }
  // Reports a step with a residual for each virtual worker of both workers.
  static void Step(JobUnderTest& job, uint64_t clock, uint32_t view = 1) {
    for (const uint32_t id : {2u, 3u}) {
      const uint32_t first = 2 * (id - 2);
      HeartbeatRequest beat = In(job.ReadyBeat(id), view);
      beat = WithStep(WithStep(std::move(beat), first, clock), first + 1, clock);
      for (StepReport& step : *beat.mutable_steps()) step.set_residual_squares(1e-2);
      job.Send(beat);
    }
  }
};

TEST_F(CoordinatorResidualsTest, ACheckpointIsWholeWithAPartOfEachVirtualWorker) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 4), 1, 4, /*file=*/false));
  job.Send(WithResidual(job.ReadyBeat(3), 2, 4));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.Send(WithResidual(WithResidual(job.ReadyBeat(3), 2, 4), 3, 4));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  const Manifest& manifest = commits[0].manifest;
  ASSERT_EQ(manifest.files_size(), 5);
  EXPECT_FALSE(manifest.files(1).has_virtual_worker());
  EXPECT_EQ(manifest.files(2).virtual_worker(), 0u);
  EXPECT_EQ(manifest.files(2).name(), "residual-0");
  EXPECT_EQ(manifest.files(4).virtual_worker(), 3u);
}

TEST_F(CoordinatorResidualsTest, ALostWorkerHoldsNoCheckpointUp) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 4), 1, 4));
  Lose(job, 3);
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].manifest.files_size(), 4);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());

  // The new owner reports that it has no residual of the time before.
  job.Send(WithClocks(job.ReadyBeat(1), 2, {6, 6, 6, 6}));
  job.Send(In(WithLanes(job.ReadyBeat(1), 6), 2));
  HeartbeatRequest worker = In(job.ReadyBeat(2), 2);
  for (const uint32_t v : {0u, 1u}) worker = WithResidual(std::move(worker), v, 6);
  job.Send(worker);
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  for (const uint32_t v : {2u, 3u}) worker = WithResidual(std::move(worker), v, 6, /*file=*/false);
  job.Send(worker);
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
}

TEST_F(CoordinatorResidualsTest, ResidualPartsOfRepeatedStepsAreDiscarded) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  HeartbeatRequest lost = job.ReadyBeat(3);
  for (const uint32_t v : {2u, 3u}) lost = WithResidual(std::move(lost), v, 6);
  job.Send(lost);
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {6, 6, 5, 6}));  // worker 2 repeats step 5
  HeartbeatRequest worker = In(job.ReadyBeat(2), 2);
  for (const uint32_t v : {0u, 1u}) worker = WithResidual(std::move(worker), v, 6);
  job.Send(worker);
  job.Send(In(WithLanes(job.ReadyBeat(1), 6), 2));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.Send(WithResidual(In(job.ReadyBeat(2), 2), 2, 6));
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
}

TEST_F(CoordinatorResidualsTest, AJobGoesBackToACheckpointThatWorkersAreStillWriting) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Step(job, 3);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  Lose(job, 1);
  job.Join(SERVER, 50);
  EXPECT_TRUE(job.Take<TimelineBegun>().empty());
  for (const uint32_t id : {2u, 3u}) {
    const uint32_t first = 2 * (id - 2);
    job.Send(WithResidual(WithResidual(job.ReadyBeat(id), first, 4), first + 1, 4));
  }
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  const std::vector<Action> actions = job.coordinator().TakeActions();
  bool begun = false;
  for (const Action& action : actions) {
    if (const auto* timeline = std::get_if<TimelineBegun>(&action)) {
      begun = true;
      EXPECT_EQ(timeline->version, 4u);
    }
    if (const auto* notice = std::get_if<NoticeAction>(&action)) {
      EXPECT_THAT(notice->text, Not(HasSubstr("rolled back without"))) << "it has all of it";
    }
  }
  EXPECT_TRUE(begun);
}

TEST_F(CoordinatorResidualsTest, RollbackReportsResidualsNotWrittenInTime) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Step(job, 3);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 4), 1, 4));
  job.Send(WithResidual(job.ReadyBeat(3), 2, 4));
  Lose(job, 1);
  job.Join(SERVER, 50);
  Notices(job);
  for (int i = 0; i < 7; ++i) {
    for (const uint32_t id : {2u, 3u, 4u}) job.Send(job.Beat(id));
    job.Pass(absl::Seconds(1));
  }
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  EXPECT_EQ(
      Notices(job),
      "the job rolled back without error-feedback residuals of virtual worker 3 (norm 0.1)\n");
}

// Lanes have written step 4, neither worker has; then server 1 is lost and the job rolls back.
void GoBackLackingResiduals(JobUnderTest& job) {
  job.Run(1, 2);
  for (const uint32_t lane : {0u, 1u}) job.Send(WithPart(job.ReadyBeat(1), lane, 4));
  job.coordinator().OnGone(1, kJob, job.now());
}

TEST_F(CoordinatorResidualsTest, RollbackReportsResidualsOfWorkersLostMeanwhile) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Step(job, 3);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 4), 1, 4));
  Lose(job, 1);
  Notices(job);
  Lose(job, 3);
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  job.Join(SERVER, 50);
  EXPECT_THAT(Notices(job), HasSubstr("the job rolled back without error-feedback residuals of "
                                      "virtual workers 2, 3 (norm 0.141)\n"));
}

TEST_F(CoordinatorResidualsTest, ACoordinatorThatTakesTheJobUpGivesWorkersTheirTimeAgain) {
  JobUnderTest job(Options());
  GoBackLackingResiduals(job);
  const auto pass = [&job](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      for (const uint32_t id : {2u, 3u}) job.Send(job.Beat(id));
      job.Pass(absl::Seconds(1));
    }
  };
  pass(3);
  job.coordinator().OnTakenUp(job.now());
  pass(3);
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  pass(3);
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
}

TEST_F(CoordinatorResidualsTest, AJobThatIsStoppedAsItGoesBackKeepsWhatLanesHaveWritten) {
  JobUnderTest job(Options());
  GoBackLackingResiduals(job);
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.coordinator().OnStop(job.now());
  EXPECT_EQ(job.coordinator().phase(), DONE);
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
}

TEST_F(CoordinatorResidualsTest, FailuresOfUnneededResidualPartsAreIgnored) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  const auto failed = [&job](uint32_t worker, uint32_t virtual_worker, uint64_t version) {
    HeartbeatRequest beat = WithResidual(job.ReadyBeat(worker), virtual_worker, version, false);
    beat.mutable_parts(0)->set_error("the disk is full");
    job.Take<NoticeAction>();
    job.Send(beat);
    return !job.Take<NoticeAction>().empty();
  };
  EXPECT_FALSE(failed(3, 0, 4)) << "it is worker 2's";
  EXPECT_FALSE(failed(3, 7, 4)) << "there is none";
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 4), 1, 4));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(3), 2, 6), 3, 6));
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  EXPECT_FALSE(failed(3, 2, 4)) << "it is whole without";
  EXPECT_TRUE(failed(3, 2, 8));
}

TEST_F(CoordinatorResidualsTest, ACheckpointThatAWorkerCannotWriteIsNone) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  job.Take<NoticeAction>();
  HeartbeatRequest beat = WithResidual(job.ReadyBeat(3), 2, 4, /*file=*/false);
  beat.mutable_parts(0)->set_error("the disk is full");
  job.Send(beat);
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0].text, HasSubstr("checkpoint of step 4 was not written: worker-1 (host, "
                                         "pid 102): the disk is full"));
  // Its other parts arrive, and those of later versions.
  job.Send(WithResidual(WithResidual(job.ReadyBeat(2), 0, 6), 1, 6));
  job.Send(WithResidual(WithResidual(job.ReadyBeat(3), 2, 6), 3, 6));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
}

TEST_F(CoordinatorResidualsTest, WithoutErrorFeedbackNobodyIsWaitedFor) {
  CoordinatorOptions options = Options();
  options.config.mutable_comm()->mutable_push_codec()->set_error_feedback(false);
  JobUnderTest job(options);
  job.Run(1, 2);
  job.Send(WithLanes(job.ReadyBeat(1), 4));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].manifest.files_size(), 2);
}

}  // namespace
}  // namespace tug
