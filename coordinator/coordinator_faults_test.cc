// SPDX-License-Identifier: Apache-2.0
// Tests jobs that lose nodes while running, and get new ones.

#include <cmath>
#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Server 1 with two lanes, workers 2 and 3 with two virtual workers each.
class CoordinatorFaultsTest : public ::testing::Test {
 protected:
  static CoordinatorOptions Options(FaultConfig::WorkerLoss on_loss = FaultConfig::REASSIGN) {
    CoordinatorOptions options = JobUnderTest::Options(1, 2, 10, 0, 4);
    options.config.mutable_fault()->set_on_worker_loss(on_loss);
    options.config.mutable_fault()->set_max_rollbacks(1);
    return options;
  }
  static HeartbeatRequest In(HeartbeatRequest beat, uint32_t view) {
    beat.set_known_view(view);
    return beat;
  }
  static HeartbeatRequest WithClocks(HeartbeatRequest beat, uint32_t view,
                                     const std::vector<uint64_t>& clocks) {
    beat.set_clocks_of_view(view);
    beat.mutable_clocks()->Assign(clocks.begin(), clocks.end());
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
};

TEST_F(CoordinatorFaultsTest, AfterTheLossOfAWorkerLanesAreFencedFirstAndThenTheOthersTakeOver) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 3);
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  EXPECT_EQ(Notices(job),
            "worker-1 (host, pid 102) was lost: its connection was closed; the other workers take "
            "over its virtual workers\n");
  EXPECT_EQ(job.coordinator().OnHeartbeat(job.ReadyBeat(3), job.now()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(job.Send(job.ReadyBeat(2)).has_view()) << "lanes first";

  HeartbeatReply reply = job.Send(job.ReadyBeat(1));
  EXPECT_EQ(reply.next_view().number(), 2u);
  EXPECT_FALSE(reply.has_view());
  reply = job.Send(WithClocks(job.ReadyBeat(1), 2, {5, 5, 4, 5}));
  EXPECT_EQ(reply.next_view().number(), 0u);
  ASSERT_TRUE(reply.has_view());

  const View view = job.Send(job.ReadyBeat(2)).view();
  EXPECT_EQ(view.number(), 2u);
  EXPECT_EQ(view.timeline(), 1u);
  EXPECT_EQ(view.lanes_size(), 2);
  ASSERT_EQ(view.workers_size(), 1);
  EXPECT_THAT(view.workers(0).virtual_workers(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(view.workers(0).start_clocks(), ElementsAre(5, 5, 4, 5));
  EXPECT_TRUE(job.Send(In(job.ReadyBeat(2), 2)).go());
}

TEST_F(CoordinatorFaultsTest, UnreportedStepsOfLostWorkerBlockNoStep) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    job.Send(WithStep(WithStep(job.ReadyBeat(2), 0, clock), 1, clock));
  }
  EXPECT_TRUE(job.Take<StepCompleted>().empty());
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {3, 3, 2, 2}));
  EXPECT_EQ(job.Take<StepCompleted>().size(), 2u);
  // Worker 2 repeats the third step.
  job.Send(WithStep(WithStep(In(job.ReadyBeat(2), 2), 2, 2), 3, 2));
  const auto steps = job.Take<StepCompleted>();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].metrics.step, 3u);
  EXPECT_EQ(steps[0].metrics.targets, 8u);
}

TEST_F(CoordinatorFaultsTest, TellsOnceWhatPushesOfALostWorkerHadLeftOut) {
  for (const auto on_loss : {FaultConfig::REASSIGN, FaultConfig::WAIT, FaultConfig::SHRINK}) {
    JobUnderTest job(Options(on_loss));
    job.Run(1, 2);
    HeartbeatRequest beat = WithStep(WithStep(job.ReadyBeat(3), 2, 0), 3, 0);
    beat.mutable_steps(0)->set_residual_squares(9e-4);
    beat.mutable_steps(1)->set_residual_squares(16e-4);
    job.Send(beat);
    Lose(job, 3);
    EXPECT_THAT(Notices(job),
                HasSubstr("worker-1 (host, pid 102) was lost; this loses error-feedback residuals "
                          "of virtual workers 2, 3 (norm 0.05)\n"));
    job.Send(WithClocks(job.ReadyBeat(1), 2, {1, 1, 1, 1}));
    EXPECT_EQ(Notices(job), "");
  }
}

TEST_F(CoordinatorFaultsTest, TellsWhatGoesWithVirtualWorkersThatMove) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  HeartbeatRequest beat = WithStep(WithStep(job.ReadyBeat(3), 2, 0), 3, 0);
  beat.mutable_steps(1)->set_residual_squares(4e-4);
  job.Send(beat);
  ASSERT_TRUE(job.coordinator().OnDrain("worker-1", job.now()).ok());
  HeartbeatRequest paused = job.ReadyBeat(3);
  paused.set_pausing(true);
  job.Send(paused);
  Notices(job);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {1, 1, 1, 1}));
  EXPECT_EQ(Notices(job),
            "worker-1 (host, pid 102) left; this loses error-feedback residuals of virtual worker "
            "3 (norm 0.02)\n");

  beat = WithStep(WithStep(In(job.ReadyBeat(2), 2), 2, 1), 0, 1);
  beat.mutable_steps(0)->set_residual_squares(4);
  beat.mutable_steps(1)->set_residual_squares(9);
  job.Send(beat);
  job.Join(WORKER, 200);
  job.Send(WithClocks(In(job.ReadyBeat(1), 2), 3, {2, 2, 2, 2}));
  EXPECT_THAT(Notices(job),
              HasSubstr("worker-0 (host, pid 101) gave up virtual workers; this loses "
                        "error-feedback residuals of virtual worker 2 (norm 2)"));
}

TEST_F(CoordinatorFaultsTest, AWorkerThatJoinsLaterGetsVirtualWorkersBack) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {1, 1, 1, 1}));
  const uint32_t joined = job.Join(WORKER, 200);
  EXPECT_EQ(joined, 4u);
  EXPECT_FALSE(job.Send(job.Beat(joined)).has_view()) << "it is not in one yet";
  EXPECT_EQ(job.Send(In(job.ReadyBeat(1), 2)).next_view().number(), 3u);
  job.Send(WithClocks(In(job.ReadyBeat(1), 2), 3, {6, 6, 6, 6}));
  const View view = job.Send(job.Beat(joined)).view();
  EXPECT_EQ(view.number(), 3u);
  ASSERT_EQ(view.workers_size(), 2);
  EXPECT_THAT(view.workers(0).virtual_workers(), ElementsAre(0, 1));
  EXPECT_THAT(view.workers(1).virtual_workers(), ElementsAre(2, 3));
  EXPECT_THAT(view.workers(1).start_clocks(), ElementsAre(6, 6));
}

TEST_F(CoordinatorFaultsTest, WaitingLeavesThemToWhoJoins) {
  JobUnderTest job(Options(FaultConfig::WAIT));
  job.Run(1, 2);
  Lose(job, 2);
  EXPECT_THAT(Notices(job), HasSubstr("the job waits for a replacement"));
  job.Send(WithClocks(job.ReadyBeat(1), 2, {1, 1, 1, 1}));
  EXPECT_EQ(job.Send(job.ReadyBeat(3)).view().workers_size(), 1);
  const uint32_t joined = job.Join(WORKER, 200);
  job.Send(WithClocks(In(job.ReadyBeat(1), 2), 3, {1, 1, 2, 2}));
  const View view = job.Send(job.Beat(joined)).view();
  EXPECT_THAT(view.workers(1).virtual_workers(), ElementsAre(0, 1));
  EXPECT_THAT(view.workers(1).start_clocks(), ElementsAre(1, 1));
}

// Servers have its pushes of the step, so the others complete the step before a replacement joins;
// its own reports of the step never arrived.
TEST_F(CoordinatorFaultsTest, StepEndingDuringWaitCompletesWithoutLostReports) {
  JobUnderTest job(Options(FaultConfig::WAIT));
  job.Run(1, 2);
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {0, 0, 0, 0}));
  job.Send(WithStep(WithStep(In(job.ReadyBeat(2), 2), 0, 0), 1, 0));
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).step(), 0u);
  const uint32_t joined = job.Join(WORKER, 200);
  job.Send(WithClocks(In(job.ReadyBeat(1), 2), 3, {1, 1, 1, 1}));
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).step(), 1u);
  job.Send(WithStep(WithStep(In(job.ReadyBeat(2), 3), 0, 1), 1, 1));
  job.Send(WithStep(WithStep(In(job.ReadyBeat(joined), 3), 2, 1), 3, 1));
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).step(), 2u);
}

TEST_F(CoordinatorFaultsTest, AStopDoesNotWaitForAWorker) {
  JobUnderTest job(Options(FaultConfig::WAIT));
  job.Run(1, 2);
  Lose(job, 2);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {1, 1, 1, 1}));
  HeartbeatRequest worker = WithStep(In(job.ReadyBeat(3), 2), 2, 1);
  job.Send(worker);
  job.coordinator().OnStop(job.now());
  worker.set_pausing(true);
  EXPECT_TRUE(job.Send(worker).pause());
  job.Send(WithClocks(In(job.ReadyBeat(1), 2), 3, {1, 1, 1, 1}));
  worker.set_known_view(3);
  const HeartbeatReply reply = job.Send(worker);
  EXPECT_FALSE(reply.pause());
  EXPECT_EQ(reply.final_version(), 2u);
}

TEST_F(CoordinatorFaultsTest, ShrinkingCompletesStepsWithoutThem) {
  JobUnderTest job(Options(FaultConfig::SHRINK));
  job.Run(1, 2);
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {0, 0, 0, 0}));
  job.Send(WithStep(WithStep(In(job.ReadyBeat(2), 2), 0, 0), 1, 0));
  EXPECT_EQ(job.Take<StepCompleted>().size(), 1u);
}

TEST_F(CoordinatorFaultsTest, TakesNobodyForFinishedWhoMayHaveToTakeOver) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  HeartbeatRequest finished = job.ReadyBeat(2);
  finished.set_finished(true);
  job.Send(finished);
  job.coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job.now());
  Lose(job, 3);
  EXPECT_EQ(job.Send(finished).phase(), RUNNING);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {10, 10, 10, 10}));
  EXPECT_EQ(job.Send(finished).phase(), RUNNING) << "of the view before";
  EXPECT_EQ(job.Send(In(finished, 2)).phase(), DONE);
}

TEST_F(CoordinatorFaultsTest, RollsBackToCheckpointOnceServerReplacementJoins) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithStep(WithStep(job.ReadyBeat(2), 0, 0), 1, 0));
  job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
  Lose(job, 1);
  EXPECT_THAT(Notices(job), HasSubstr("the job rolls back to step 5"));
  HeartbeatReply reply = job.Send(job.ReadyBeat(2));
  EXPECT_EQ(reply.phase(), WAITING);
  EXPECT_FALSE(reply.go());
  EXPECT_FALSE(reply.has_view());

  const uint32_t joined = job.Join(SERVER, 50);
  const auto begun = job.Take<TimelineBegun>();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].number, 2u);
  EXPECT_EQ(begun[0].version, 5u);
  const View view = job.Send(job.Beat(joined)).view();
  EXPECT_EQ(view.number(), 2u);
  EXPECT_EQ(view.timeline(), 2u);
  EXPECT_EQ(view.start_version(), 5u);
  EXPECT_EQ(view.restore_path(), "/runs/job-1/checkpoints/step-00000005");
  EXPECT_EQ(view.lanes(0).server_node_id(), joined);
  EXPECT_THAT(view.workers(0).start_clocks(), ElementsAre(5, 5));

  // Reports of the previous timeline are void, even of steps it had not completed.
  job.Send(WithStep(WithStep(job.ReadyBeat(3), 2, 5), 3, 5));
  for (const uint32_t id : {2u, 3u, joined}) reply = job.Send(In(job.ReadyBeat(id), 2));
  EXPECT_TRUE(reply.go());
  job.Send(WithStep(WithStep(In(job.ReadyBeat(2), 2), 0, 5), 1, 5));
  EXPECT_TRUE(job.Take<StepCompleted>().empty());
  job.Send(WithStep(WithStep(In(job.ReadyBeat(3), 2), 2, 5), 3, 5));
  EXPECT_EQ(job.Take<StepCompleted>().at(0).metrics.step, 6u);

  Lose(job, joined);
  EXPECT_EQ(job.coordinator().phase(), FAILED);
  EXPECT_EQ(job.Send(job.ReadyBeat(2)).failure(),
            "server-0 (host, pid 50) was lost: its connection was closed; its segments have no "
            "complete replica, and fault.max_rollbacks = 1 allows no further rollback: raise it, "
            "or set sync.replicas=2; resume with: tug train --resume /runs/job-1 (step 5)");
}

TEST_F(CoordinatorFaultsTest, ACheckpointThatIsWholeIsCommittedBeforeTheJobGoesBack) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 4), 1, 4));
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  Lose(job, 1);
  job.Join(SERVER, 50);
  EXPECT_TRUE(job.Take<TimelineBegun>().empty());
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  EXPECT_EQ(job.Take<TimelineBegun>().at(0).version, 4u);
}

TEST_F(CoordinatorFaultsTest, WithoutACheckpointItBeginsAgain) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 1);
  const uint32_t joined = job.Join(SERVER, 50);
  const View view = job.Send(job.Beat(joined)).view();
  EXPECT_EQ(view.start_version(), 0u);
  EXPECT_EQ(view.restore_path(), "");
}

TEST_F(CoordinatorFaultsTest, ALossBeforeTheFirstStepBeginsAgainWhenEveryoneIsBack) {
  JobUnderTest job(Options());
  job.Join(SERVER, 1);
  job.Join(WORKER, 101);
  job.Join(WORKER, 102);
  job.Send(job.ReadyBeat(1));
  Lose(job, 3);
  EXPECT_EQ(job.coordinator().phase(), WAITING);
  for (const uint32_t id : {1u, 2u}) job.Send(In(job.ReadyBeat(id), 2));
  EXPECT_EQ(job.coordinator().phase(), RUNNING) << "with whom there is";
}

TEST_F(CoordinatorFaultsTest, AStopBeforeWhoTookOverHasBegunLosesNoStep) {
  for (const auto on_loss : {FaultConfig::REASSIGN, FaultConfig::WAIT, FaultConfig::SHRINK}) {
    JobUnderTest job(Options(on_loss));
    job.Run(1, 2);
    for (const uint32_t id : {2u, 3u}) job.Send(WithStep(job.ReadyBeat(id), 2 * (id - 2), 5));
    Lose(job, 2);
    Lose(job, 3);
    job.Send(WithClocks(job.ReadyBeat(1), 3, {5, 5, 5, 5}));
    job.coordinator().OnStop(job.now());
    EXPECT_EQ(job.Send(job.ReadyBeat(1)).phase(), RUNNING) << "there is nobody to end it";
    const uint32_t joined = job.Join(WORKER, 200);
    const uint32_t view = job.Send(job.ReadyBeat(1)).next_view().number();
    job.Send(WithClocks(job.ReadyBeat(1), view, {5, 5, 5, 5}));
    HeartbeatRequest worker = In(job.ReadyBeat(joined), view);
    worker.set_pausing(true);
    const HeartbeatReply reply = job.Send(worker);
    EXPECT_EQ(reply.phase(), RUNNING);
    EXPECT_EQ(reply.final_version(), 6u) << "some segment may have step 5 whole";
  }
}

TEST_F(CoordinatorFaultsTest, ClocksThatNobodyCanHaveBegunFailTheJob) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 3);
  job.Send(WithClocks(job.ReadyBeat(1), 2, {5, 5, ~0ull, 5}));
  EXPECT_EQ(job.coordinator().phase(), FAILED);
  EXPECT_THAT(
      job.Send(job.ReadyBeat(2)).failure(),
      HasSubstr("servers report that a virtual worker continues at step 18446744073709551615, "
                "beyond the end of the job"));
}

TEST_F(CoordinatorFaultsTest, APartOfACheckpointBeyondTheEndOfTheJobIsNone) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 11), 1, 11));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 10), 1, 10));
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
}

TEST_F(CoordinatorFaultsTest, TheLossOfAServerOnceAllIsSavedEndsTheJob) {
  CoordinatorOptions options = Options();
  options.config.mutable_fault()->set_max_rollbacks(0);
  JobUnderTest job(options);
  job.Run(1, 2);
  job.coordinator().OnCheckpointCommitted(10, absl::OkStatus(), job.now());
  Lose(job, 1);
  EXPECT_EQ(job.coordinator().phase(), DONE);
  EXPECT_THAT(Notices(job), HasSubstr("only the last evaluation is missing"));
}

TEST_F(CoordinatorFaultsTest, LateReportsOfLostNodeAreIgnored) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 3);
  const uint32_t joined = job.Join(WORKER, 102);  // same incarnation
  EXPECT_EQ(joined, 4u);
  HeartbeatRequest late = WithStep(WithStep(job.ReadyBeat(3), 2, 0), 3, 0);
  late.set_failure("its lanes are gone");
  EXPECT_EQ(job.coordinator().OnHeartbeat(late, job.now()).status().code(),
            absl::StatusCode::kNotFound);
  Lose(job, 3);
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  job.Send(WithStep(WithStep(job.ReadyBeat(2), 0, 0), 1, 0));
  EXPECT_TRUE(job.Take<StepCompleted>().empty());
}

TEST_F(CoordinatorFaultsTest, EachLossAndEachWorkerThatJoinsBeginsAChangeUnderWayAgain) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  Lose(job, 2);
  EXPECT_EQ(job.Send(job.ReadyBeat(1)).next_view().number(), 2u);
  Lose(job, 3);
  const uint32_t joined = job.Join(WORKER, 200);
  EXPECT_EQ(job.Send(WithClocks(job.ReadyBeat(1), 2, {9, 9, 9, 9})).next_view().number(), 4u);
  EXPECT_FALSE(job.Send(WithClocks(job.ReadyBeat(1), 3, {8, 8, 8, 8})).has_view());
  const View view = job.Send(WithClocks(job.ReadyBeat(1), 4, {3, 3, 3, 3})).view();
  ASSERT_EQ(view.workers_size(), 1);
  EXPECT_EQ(view.workers(0).node_id(), joined);
  EXPECT_THAT(view.workers(0).start_clocks(), ElementsAre(3, 3, 3, 3));
}

TEST_F(CoordinatorFaultsTest, AStopWhileTheJobGoesBackSaysWhatItLeaves) {
  for (const bool saved : {false, true}) {
    for (const bool replaced : {false, true}) {
      JobUnderTest job(Options());
      job.Run(1, 2);
      if (saved) job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
      Lose(job, 1);
      if (replaced) job.Join(SERVER, 50);  // and is not ready yet
      EXPECT_EQ(job.coordinator().OnStop(job.now()).message(),
                saved ? "the job ends now, with the checkpoint of step 5"
                      : "the job ends now, without a new checkpoint");
      EXPECT_EQ(job.coordinator().phase(), DONE);
    }
  }
}

TEST_F(CoordinatorFaultsTest, AStopWhileACheckpointIsWrittenLeavesOpenWhichIsTheLast) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 4), 1, 4));
  Lose(job, 1);
  EXPECT_EQ(job.coordinator().OnStop(job.now()).message(),
            "the job ends now, without a new checkpoint, or with a later checkpoint that is "
            "being written");
}

TEST_F(CoordinatorFaultsTest, AJobThatIsStoppedWhileItGoesBackEndsAtTheStepOfItsCheckpoint) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  for (uint64_t clock = 0; clock < 10; ++clock) {
    for (uint32_t v = 0; v < 4; ++v) job.Send(WithStep(job.ReadyBeat(2 + v / 2), v, clock));
  }
  for (const uint64_t version : {4, 9}) {
    for (uint32_t v = 0; v < 4; ++v) {
      HeartbeatRequest beat = job.ReadyBeat(2 + v / 2);
      EvalReport* eval = beat.add_evals();
      eval->set_version(version);
      eval->set_virtual_worker(v);
      eval->set_loss_sum(version == 9 ? 1 : 2);
      eval->set_targets(1);
      job.Send(beat);
    }
  }
  job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
  Lose(job, 1);
  ASSERT_EQ(job.coordinator().OnStatus(job.now()).step(), 10u);
  job.coordinator().OnStop(job.now());
  const StatusReply status = job.coordinator().OnStatus(job.now());
  EXPECT_EQ(status.phase(), DONE);
  EXPECT_EQ(status.last_checkpoint(), 5u);
  EXPECT_EQ(status.step(), 5u);
  EXPECT_TRUE(std::isnan(status.loss())) << "that of step 10 is gone";
  EXPECT_EQ(status.tokens_per_second(), 0);
  EXPECT_EQ(status.best().version(), 4u);
}

// It received no messages during the pause.
TEST_F(CoordinatorFaultsTest, ACoordinatorThatStoodStillItselfBlamesNobody) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  job.Pass(absl::Seconds(1));
  job.StandStill(absl::Seconds(60));
  EXPECT_EQ(Notices(job), "");
  job.Pass(absl::Seconds(3));
  for (const uint32_t id : {1, 2}) job.Send(job.ReadyBeat(id));
  EXPECT_EQ(Notices(job), "");
  job.Pass(absl::Seconds(2));
  EXPECT_THAT(Notices(job), HasSubstr("worker-1 (host, pid 102) was lost: no heartbeat for "));
}

// Each pause is shorter than the timeout, and no heartbeat arrives in between.
TEST_F(CoordinatorFaultsTest, ACoordinatorThatStandsStillRepeatedlyBlamesNobody) {
  JobUnderTest job(Options());
  job.Run(1, 2);
  for (int pause = 0; pause < 5; ++pause) {
    job.Pass(absl::Milliseconds(100));
    job.StandStill(absl::Milliseconds(2400));
  }
  EXPECT_EQ(Notices(job), "");
  for (const uint32_t id : {1, 2}) job.Send(job.ReadyBeat(id));
  job.Pass(absl::Seconds(5));
  EXPECT_THAT(Notices(job), HasSubstr("worker-1 (host, pid 102) was lost: no heartbeat for "));
}

TEST_F(CoordinatorFaultsTest, AShortPauseOfTheCoordinatorBlamesNobodyWithAShortTimeout) {
  CoordinatorOptions options = Options();
  options.config.mutable_fault()->set_failure_timeout_ms(200);
  JobUnderTest job(options);
  job.Run(1, 2);
  job.Pass(absl::Milliseconds(50));
  job.StandStill(absl::Milliseconds(190));
  EXPECT_EQ(Notices(job), "");
}

}  // namespace
}  // namespace tug
