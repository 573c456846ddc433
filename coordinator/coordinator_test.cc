// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <string>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

TEST(Coordinator, IssuesTheViewWhenEveryoneIsInAndGoesWhenEveryoneIsReady) {
  JobUnderTest job(2, 2, 10, 0, 5);
  const uint32_t server = job.Join(SERVER, 1);
  const uint32_t worker = job.Join(WORKER, 3);
  const uint32_t second_server = job.Join(SERVER, 2);
  EXPECT_FALSE(job.Send(job.Beat(worker)).has_view());
  const uint32_t second_worker = job.Join(WORKER, 4);

  const HeartbeatReply reply = job.Send(job.Beat(worker));
  EXPECT_EQ(reply.phase(), WAITING);
  EXPECT_FALSE(reply.go());
  ASSERT_TRUE(reply.has_view());
  const View& view = reply.view();
  EXPECT_EQ(view.number(), 1u);
  ASSERT_EQ(view.lanes_size(), 4);
  EXPECT_EQ(view.lanes(0).endpoint(), "tcp://h:10");
  EXPECT_EQ(view.lanes(3).endpoint(), "tcp://h:21");
  EXPECT_EQ(view.lanes(3).server_node_id(), second_server);
  EXPECT_EQ(view.lanes(3).index_on_server(), 1u);
  EXPECT_THAT(view.lane_of_segment(), ::testing::ElementsAre(0, 2, 1, 3, 3));
  ASSERT_EQ(view.workers_size(), 2);
  EXPECT_EQ(view.workers(0).node_id(), worker);
  EXPECT_THAT(view.workers(0).virtual_workers(), ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(view.workers(1).virtual_workers(), ::testing::ElementsAre(3, 4));

  for (const uint32_t id : {server, worker, second_server}) {
    EXPECT_FALSE(job.Send(job.ReadyBeat(id)).go());
  }
  const HeartbeatReply go = job.Send(job.ReadyBeat(second_worker));
  EXPECT_TRUE(go.go());
  EXPECT_FALSE(go.has_view());
  EXPECT_EQ(go.phase(), RUNNING);
  EXPECT_EQ(go.final_version(), 10u);
}

TEST(Coordinator, WaitsForServersLanes) {
  JobUnderTest job(1, 1);
  ASSERT_TRUE(job.coordinator().OnRegister(job.Request(SERVER, 1), job.now()).ok());
  const uint32_t worker = job.Join(WORKER, 2);
  EXPECT_FALSE(job.Send(job.Beat(worker)).has_view());
  RegisterRequest wrong = job.Request(SERVER, 1);
  wrong.add_lane_endpoints("tcp://h:1");
  EXPECT_EQ(job.coordinator().OnRegister(wrong, job.now()).status().code(),
            absl::StatusCode::kInvalidArgument);
  job.Join(SERVER, 1);
  EXPECT_TRUE(job.Send(job.Beat(worker)).has_view());
}

TEST(Coordinator, GivesARepeatedRegisterTheSameId) {
  JobUnderTest job(1, 2);
  const uint32_t first = job.Join(WORKER, 9);
  EXPECT_EQ(job.Join(WORKER, 9), first);
  EXPECT_NE(job.Join(WORKER, 10), first);
}

TEST(Coordinator, RefusesAnotherVersionOrConfiguration) {
  JobUnderTest job(1, 1);
  RegisterRequest request = job.Request(WORKER, 1);
  request.set_protocol_version(kControlVersion + 1);
  auto reply = job.coordinator().OnRegister(request, job.now());
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("same version of tug"));

  request = job.Request(WORKER, 1);
  request.set_job_fingerprint(kFingerprint + 1);
  reply = job.coordinator().OnRegister(request, job.now());
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("same job file"));

  request.set_job_fingerprint(kFingerprint);
  EXPECT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
}

TEST(Coordinator, RefusesAWorkerOfAnotherNumberOfWorkersBeforeItIsAMember) {
  JobUnderTest job(1, 1);
  RegisterRequest request = job.Request(WORKER, 1);
  request.set_workers_started(3);
  const auto reply = job.coordinator().OnRegister(request, job.now());
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reply.status().message()),
              ::testing::AllOf(HasSubstr("WORLD_SIZE=3 but the job has 1 worker:"),
                               HasSubstr("cluster.workers=3")));
  request.set_workers_started(1);
  EXPECT_TRUE(job.coordinator().OnRegister(request, job.now()).ok()) << "its place is free";
}

TEST(Coordinator, TellsAStrangerThatItIsNotAMember) {
  JobUnderTest job(1, 1);
  EXPECT_EQ(job.coordinator().OnHeartbeat(job.Beat(5), job.now()).status().code(),
            absl::StatusCode::kNotFound);
  HeartbeatRequest other_job = job.Beat(job.Join(WORKER, 1));
  other_job.set_job(kJob + 1);
  EXPECT_EQ(job.coordinator().OnHeartbeat(other_job, job.now()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Coordinator, FreesThePlaceOfANodeLostBeforeTheStart) {
  JobUnderTest job(1, 1);
  const uint32_t lost = job.Join(WORKER, 1);
  job.Pass(absl::Seconds(6));
  EXPECT_EQ(job.Take<NoticeAction>().size(), 1u);
  EXPECT_EQ(job.coordinator().OnHeartbeat(job.Beat(lost), job.now()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_NE(job.Join(WORKER, 2), lost);
  EXPECT_EQ(job.coordinator().phase(), WAITING);
}

TEST(Coordinator, FailsNamingTheLostNodeAndTheCheckpoint) {
  JobUnderTest job(2, 1);
  job.Run(2, 1);
  job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
  for (int i = 0; i < 10; ++i) {  // server 2 is silent
    job.Send(job.Beat(1));
    job.Send(job.Beat(3));
    job.Pass(absl::Milliseconds(500));
    EXPECT_EQ(job.coordinator().phase(), RUNNING);
  }
  job.Pass(absl::Milliseconds(500));
  EXPECT_EQ(job.coordinator().phase(), FAILED);
  EXPECT_TRUE(job.Take<JobEnded>().empty());

  EXPECT_EQ(job.Send(job.Beat(1)).phase(), FAILED);
  EXPECT_TRUE(job.Take<JobEnded>().empty());
  const HeartbeatReply reply = job.Send(job.Beat(3));
  EXPECT_EQ(reply.failure(),
            "server-1 (host, pid 2) was lost: no heartbeat for 5.1 s; its segments have no "
            "complete replica, and fault.max_rollbacks = 0 allows no further rollback: raise it, "
            "or set sync.replicas=2; resume with: tug train --resume /runs/job-1 (step 5)");
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(std::string(ended[0].status.message()), reply.failure());
}

TEST(Coordinator, EndsAfterAGraceTimeWhenNodesDoNotAsk) {
  JobUnderTest job(1, 2);
  job.Run(1, 2);
  HeartbeatRequest failing = job.Beat(2);
  failing.set_failure("the data file is gone: put it back");
  EXPECT_EQ(job.Send(failing).phase(), FAILED);
  job.Pass(job.coordinator().told_grace() - absl::Milliseconds(100));
  EXPECT_TRUE(job.Take<JobEnded>().empty());
  job.Pass(absl::Milliseconds(200));
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(std::string(ended[0].status.message()),
            "worker-0 (host, pid 101) failed: the data file is gone: put it back; "
            "no checkpoint was written yet: start the job again");
  job.Pass(absl::Seconds(10));
  EXPECT_TRUE(job.Take<JobEnded>().empty());
}

TEST(Coordinator, RefusesToRegisterOnceTheJobHasFailed) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  job.Pass(absl::Seconds(6));
  const auto reply = job.coordinator().OnRegister(job.Request(WORKER, 50), job.now());
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Coordinator, TurnsReportsIntoStepsOnce) {
  JobUnderTest job(1, 2);
  job.Run(1, 2);
  job.Send(WithStep(job.ReadyBeat(3), 1, 0));
  job.Send(WithStep(job.ReadyBeat(3), 1, 0));
  EXPECT_TRUE(job.Take<StepCompleted>().empty());
  job.Send(WithStep(job.ReadyBeat(2), 0, 0));
  const auto steps = job.Take<StepCompleted>();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].metrics.step, 1u);
  EXPECT_DOUBLE_EQ(steps[0].metrics.loss, 2.5);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).step(), 1u);
}

TEST(Coordinator, ReportsBeginAndEndOfTheCodecsWarmup) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, 10, 0, 1);
  options.config.mutable_comm()->mutable_push_codec()->mutable_top_k();
  options.config.mutable_comm()->mutable_push_codec()->set_warmup_steps(1);
  JobUnderTest job(options);
  job.Run(1, 1);
  auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text,
            "pushes are FP32 up to step 1 (comm.push_codec.warmup_steps), then encoded");
  job.Send(WithStep(job.ReadyBeat(2), 0, 0));
  notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text, "pushes are encoded from now on (comm.push_codec)");
}

TEST(Coordinator, CommitsACheckpointWhenEveryLanesPartIsIn) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  job.Send(WithPart(job.ReadyBeat(1), 1, 4));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 1, 4), 0, 4));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  const Manifest& manifest = commits[0].manifest;
  EXPECT_EQ(manifest.version(), 4u);
  ASSERT_EQ(manifest.files_size(), 2);
  EXPECT_EQ(manifest.files(0).name(), "part-0");
  EXPECT_EQ(manifest.files(1).xxh3(), 2u);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).last_checkpoint(), 0u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).last_checkpoint(), 4u);
}

HeartbeatRequest WithUnwrittenPart(HeartbeatRequest beat, uint64_t version) {
  CheckpointPart* part = beat.add_parts();
  part->set_version(version);
  part->set_placement(1);
  part->set_error("no space left on device: free some");
  return beat;
}

CoordinatorOptions WithCheckpoints(uint64_t interval) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, 10, 0, 1);
  options.config.mutable_checkpoint()->set_interval(interval);
  return options;
}

TEST(Coordinator, GoesOnWithoutACheckpointThatCannotBeWritten) {
  JobUnderTest job(WithCheckpoints(2));
  job.Run(1, 1);
  job.coordinator().TakeActions();
  EXPECT_EQ(job.Send(WithUnwrittenPart(job.ReadyBeat(1), 2)).failure(), "");
  job.Send(WithUnwrittenPart(job.ReadyBeat(1), 2));
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text,
            "checkpoint of step 2 was not written: server-0 (host, pid 1): no space left on "
            "device: free some; next attempt at step 4");
  // Other parts of that version do not complete the checkpoint.
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 2), 1, 2));
  EXPECT_TRUE(job.Take<CommitCheckpointAction>().empty());
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 4), 1, 4));
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  // A failed commit does not end the job either.
  job.coordinator().OnCheckpointCommitted(4, absl::UnavailableError("too many open files"),
                                          job.now());
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).last_checkpoint(), 0u);
}

TEST(Coordinator, FailsWhenTooManyCheckpointsInARowCannotBeWritten) {
  JobUnderTest job(WithCheckpoints(2));
  job.Run(1, 1);
  job.Send(WithUnwrittenPart(job.ReadyBeat(1), 2));
  job.Send(WithUnwrittenPart(job.ReadyBeat(1), 4));
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  EXPECT_EQ(job.Send(WithUnwrittenPart(job.ReadyBeat(1), 6)).failure(),
            "checkpoint of step 6 was not written: server-0 (host, pid 1): no space left on "
            "device: free some; 3 checkpoints in a row were not written; no checkpoint was "
            "written yet: start the job again");
}

TEST(Coordinator, FailsWhenTheLastCheckpointCannotBeWritten) {
  JobUnderTest job(WithCheckpoints(2));
  job.Run(1, 1);
  EXPECT_THAT(job.Send(WithUnwrittenPart(job.ReadyBeat(1), 10)).failure(),
              HasSubstr("the last checkpoint (step 10) was not written: server-0"));
}

TEST(Coordinator, FailsWhenTheCheckpointThatAStopEndsWithWasNotWritten) {
  JobUnderTest job(WithCheckpoints(2));
  job.Run(1, 1);
  job.Send(WithUnwrittenPart(WithStep(job.ReadyBeat(1), 0, 1), 2));
  job.Send(WithStep(job.ReadyBeat(2), 0, 1));
  ASSERT_EQ(job.coordinator().phase(), RUNNING);
  job.coordinator().OnStop(job.now());
  HeartbeatRequest paused = WithStep(job.ReadyBeat(2), 0, 1);
  paused.set_pausing(true);
  EXPECT_THAT(job.Send(paused).failure(), HasSubstr("the last checkpoint (step 2) was not "));
}

// Steps may be shorter than the heartbeat interval.
TEST(Coordinator, CommitsCheckpointWrittenWhileJobFails) {
  JobUnderTest job(1, 1, 10);
  job.Run(1, 1);
  HeartbeatRequest failing = job.ReadyBeat(2);
  failing.set_failure("the program died");
  EXPECT_EQ(job.Send(failing).phase(), FAILED);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 4), 1, 4));
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  job.coordinator().OnCheckpointCommitted(4, absl::OkStatus(), job.now());
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_THAT(ended[0].status.message(), HasSubstr("--resume /runs/job-1 (step 4)"));
}

TEST(Coordinator, SaysWhatAJobWaitsFor) {
  CoordinatorOptions options = JobUnderTest::Options(2, 1, 10, 0, 1);
  options.config.mutable_fault()->set_max_rollbacks(1);
  JobUnderTest job(options);
  job.Join(SERVER, 1);
  job.Pass(absl::Seconds(3));
  StatusReply status = job.coordinator().OnStatus(job.now());
  EXPECT_EQ(status.wait().what(), "1 server and 1 worker to join");
  EXPECT_GE(status.wait().seconds(), 2.5);
  EXPECT_EQ(status.wait().ends(),
            "the job then starts; start missing nodes with tug server and tug worker");
  job.Join(SERVER, 2);
  job.Join(WORKER, 3);
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).wait().what(),
            "server-0, server-1, worker-0 to be ready");
  for (const uint32_t id : {1, 2, 3}) job.Send(job.ReadyBeat(id));
  EXPECT_FALSE(job.coordinator().OnStatus(job.now()).has_wait());
  job.coordinator().OnGone(2, kJob, job.now());
  status = job.coordinator().OnStatus(job.now());
  EXPECT_EQ(status.wait().what(), "1 server to join");
  EXPECT_THAT(status.wait().ends(), HasSubstr("rolls back to the checkpoint of step 0"));
}

// Its user cannot start nodes: `tug train` does.
TEST(Coordinator, NamesNoRemedyForAWaitIfALauncherStartsTheNodes) {
  CoordinatorOptions options = JobUnderTest::Options(2, 1, 10, 0, 1);
  options.launched = true;
  JobUnderTest job(options);
  job.Pass(absl::Seconds(3));
  EXPECT_EQ(job.coordinator().OnStatus(job.now()).wait().ends(), "the job then starts");
}

TEST(Coordinator, SaysThatAStepHasStalled) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, 10, 0, 1);
  options.config.mutable_comm()->set_resend_ms(1000);
  JobUnderTest job(options);
  job.Run(1, 1);
  for (int second = 0; second < 12; ++second) {
    for (const uint32_t id : {1, 2}) job.Send(job.ReadyBeat(id));
    job.Pass(absl::Seconds(1));
  }
  const JobWait wait = job.coordinator().OnStatus(job.now()).wait();
  EXPECT_EQ(wait.what(), "step 1");
  EXPECT_THAT(wait.ends(), HasSubstr("no node is missing"));
  job.Send(WithStep(job.ReadyBeat(2), 0, 0));
  EXPECT_FALSE(job.coordinator().OnStatus(job.now()).has_wait());
}

TEST(Coordinator, IsDoneWhenWorkersFinishedAndTheFinalCheckpointIsCommitted) {
  JobUnderTest job(1, 1, 3);
  job.Run(1, 1);
  HeartbeatRequest finished = WithStep(job.ReadyBeat(2), 0, 2);
  finished.set_finished(true);
  EXPECT_EQ(job.Send(finished).phase(), RUNNING);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 3), 1, 3));
  EXPECT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  EXPECT_EQ(job.Send(finished).phase(), RUNNING);
  job.coordinator().OnCheckpointCommitted(3, absl::OkStatus(), job.now());
  EXPECT_EQ(job.Send(finished).phase(), DONE);
  EXPECT_EQ(job.Send(job.ReadyBeat(1)).phase(), DONE);
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].status.ok());
}

TEST(Coordinator, AFailureSaysHowToGoOnFromTheCheckpointThatWasBeingCommitted) {
  CoordinatorOptions options = JobUnderTest::Options(1, 1, 3, 0, 1);
  options.continue_with = "tug launch job --hosts hosts";
  JobUnderTest job(options);
  job.Run(1, 1);
  job.Send(WithPart(WithPart(job.ReadyBeat(1), 0, 3), 1, 3));
  ASSERT_EQ(job.Take<CommitCheckpointAction>().size(), 1u);
  HeartbeatRequest failing = job.ReadyBeat(2);
  failing.set_failure("the data file is gone: put it back");
  EXPECT_THAT(job.Send(failing).failure(), HasSubstr("no checkpoint was written yet"));
  job.Pass(job.coordinator().told_grace());
  EXPECT_TRUE(job.Take<JobEnded>().empty()) << "waits for the commit";
  job.coordinator().OnCheckpointCommitted(3, absl::OkStatus(), job.now());
  job.Pass(absl::Milliseconds(100));
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_THAT(std::string(ended[0].status.message()),
              HasSubstr("resume with: tug launch job --hosts hosts --resume /runs/job-1 (step 3)"));
}

TEST(Coordinator, StopsAtTheStepAfterTheLatestOneBegun) {
  JobUnderTest job(1, 2, 100);
  job.Run(1, 2);
  job.Send(WithStep(job.ReadyBeat(2), 0, 6));
  job.Send(WithStep(job.ReadyBeat(3), 1, 7));
  EXPECT_FALSE(job.coordinator().OnStop(job.now()).message().empty());

  // Worker 2 has begun step 7 when it acknowledges; worker 3 has begun step 8 before it receives
  // the order.
  HeartbeatReply reply = job.Send(WithStep(job.ReadyBeat(2), 0, 7));
  EXPECT_TRUE(reply.pause());
  EXPECT_EQ(reply.final_version(), 0u);
  HeartbeatRequest paused = WithStep(job.ReadyBeat(2), 0, 7);
  paused.set_pausing(true);
  EXPECT_TRUE(job.Send(paused).pause());
  HeartbeatRequest other = WithStep(job.ReadyBeat(3), 1, 8);
  EXPECT_TRUE(job.Send(other).pause());
  job.coordinator().OnStop(job.now());  // again: no effect
  other.set_pausing(true);
  reply = job.Send(other);
  EXPECT_FALSE(reply.pause());
  EXPECT_EQ(reply.final_version(), 9u);
  EXPECT_EQ(job.Send(paused).final_version(), 9u);
  EXPECT_EQ(job.Send(job.ReadyBeat(1)).final_version(), 9u);

  for (HeartbeatRequest* worker : {&paused, &other}) {
    worker->set_finished(true);
    job.Send(*worker);
  }
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  job.coordinator().OnCheckpointCommitted(9, absl::OkStatus(), job.now());
  EXPECT_EQ(job.coordinator().phase(), DONE);
}

TEST(Coordinator, StopAfterTheLastStepKeepsTheFinalVersion) {
  JobUnderTest job(1, 1, 3);
  job.Run(1, 1);
  HeartbeatRequest finished = WithStep(job.ReadyBeat(2), 0, 2);
  finished.set_finished(true);
  job.Send(finished);
  job.coordinator().OnStop(job.now());
  EXPECT_EQ(job.Send(finished).final_version(), 3u);
}

TEST(Coordinator, StopBeforeAnyStepEndsAtOnce) {
  JobUnderTest job(1, 1, 10, 4);
  job.Run(1, 1);
  job.coordinator().OnStop(job.now());
  HeartbeatRequest paused = job.ReadyBeat(2);
  EXPECT_TRUE(job.Send(paused).pause());
  paused.set_pausing(true);
  EXPECT_EQ(job.Send(paused).phase(), DONE);
}

TEST(Coordinator, StopWhileWaitingEndsTheJob) {
  JobUnderTest job(1, 1);
  const uint32_t worker = job.Join(WORKER, 1);
  job.coordinator().OnStop(job.now());
  EXPECT_EQ(job.Send(job.Beat(worker)).phase(), DONE);
  EXPECT_EQ(job.Take<JobEnded>().size(), 1u);
}

TEST(Coordinator, SaysWhatTheWorkerThatNeedsMostIsPredictedToHold) {
  JobUnderTest job(1, 2);
  job.Join(SERVER, 1);
  job.Join(WORKER, 101);
  job.Join(WORKER, 102);
  HeartbeatRequest less = job.ReadyBeat(2), more = job.ReadyBeat(3);
  less.mutable_counters()->set_predicted_memory_bytes(400'000'000);
  more.mutable_counters()->set_predicted_memory_bytes(500'000'000);
  more.mutable_counters()->set_predicted_activation_bytes(120'000'000);
  more.mutable_counters()->set_literature_activation_bytes(345'600'000);
  for (const HeartbeatRequest& beat : {job.ReadyBeat(1), more, less}) job.Send(beat);
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text,
            "predicted memory per worker: 500.0 MB, of which activations 120.0 MB "
            "(textbook formula: 345.6 MB)");
}

TEST(Coordinator, ShowsANoticeOnce) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  HeartbeatRequest beat = job.ReadyBeat(1);
  Notice* notice = beat.add_notices();
  notice->set_key("skip 12");
  notice->set_text("step 12 skipped");
  job.Send(beat);
  job.Send(beat);
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text, "step 12 skipped");
}

}  // namespace
}  // namespace tug
