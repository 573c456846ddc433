#include "coordinator/coordinator.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kJob = 77;
constexpr uint64_t kFingerprint = 1234;

// A job of `servers` servers with 2 lanes each and `workers` workers, driven by hand.
class JobUnderTest {
 public:
  JobUnderTest(uint32_t servers, uint32_t workers, uint64_t steps = 10, uint64_t start_version = 0,
               uint32_t virtual_workers = 0)
      : coordinator_(Options(servers, workers, steps, start_version,
                             virtual_workers == 0 ? workers : virtual_workers)) {}

  explicit JobUnderTest(CoordinatorOptions options) : coordinator_(std::move(options)) {}

  static CoordinatorOptions Options(uint32_t servers, uint32_t workers, uint64_t steps,
                                    uint64_t start_version, uint32_t virtual_workers) {
    CoordinatorOptions options;
    ClusterConfig& cluster = *options.config.mutable_cluster();
    cluster.set_servers(servers);
    cluster.set_workers(workers);
    cluster.set_lanes_per_server(2);
    cluster.set_virtual_workers(virtual_workers);
    options.config.mutable_train()->set_steps(steps);
    options.config.mutable_fault()->set_failure_timeout_ms(5000);
    options.fingerprint = kFingerprint;
    options.layout.segment_bytes = {100, 50, 60, 40, 10};
    options.job = kJob;
    options.run_dir = "/runs/job-1";
    options.start_version = start_version;
    return options;
  }

  RegisterRequest Request(NodeKind kind, uint64_t incarnation) const {
    RegisterRequest request;
    request.set_protocol_version(kControlVersion);
    request.set_kind(kind);
    request.set_host("host");
    request.set_pid(static_cast<uint32_t>(incarnation));
    request.set_incarnation(incarnation);
    return request;
  }
  uint32_t Join(NodeKind kind, uint64_t incarnation) {
    RegisterRequest request = Request(kind, incarnation);
    const auto reply = coordinator_.OnRegister(request, now_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (kind == SERVER) {
      request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation * 10));
      request.add_lane_endpoints("tcp://h:" + std::to_string(incarnation * 10 + 1));
      EXPECT_TRUE(coordinator_.OnRegister(request, now_).ok());
    }
    return reply->node_id();
  }

  HeartbeatRequest Beat(uint32_t id) const {
    HeartbeatRequest request;
    request.set_node_id(id);
    request.set_job(kJob);
    return request;
  }
  HeartbeatRequest ReadyBeat(uint32_t id) const {
    HeartbeatRequest request = Beat(id);
    request.set_known_view(1);
    request.set_ready(true);
    return request;
  }
  HeartbeatReply Send(const HeartbeatRequest& request) {
    const auto reply = coordinator_.OnHeartbeat(request, now_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value_or(HeartbeatReply());
  }

  // Servers and workers join and become ready: ids 1..servers, then the workers'.
  void Run(uint32_t servers, uint32_t workers) {
    for (uint32_t i = 0; i < servers; ++i) Join(SERVER, 1 + i);
    for (uint32_t i = 0; i < workers; ++i) Join(WORKER, 101 + i);
    for (uint32_t id = 1; id <= servers + workers; ++id) Send(ReadyBeat(id));
    ASSERT_EQ(coordinator_.phase(), RUNNING);
  }

  void Pass(absl::Duration time) {
    now_ += time;
    coordinator_.OnTick(now_);
  }

  template <typename T>
  std::vector<T> Take() {
    std::vector<T> found;
    for (Action& action : coordinator_.TakeActions()) {
      if (T* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }

  Coordinator& coordinator() { return coordinator_; }
  absl::Time now() const { return now_; }

 private:
  Coordinator coordinator_;
  absl::Time now_ = absl::UnixEpoch();
};

HeartbeatRequest WithPart(HeartbeatRequest beat, uint32_t lane, uint64_t version) {
  CheckpointPart* part = beat.add_parts();
  part->set_lane(lane);
  part->set_version(version);
  part->set_file("part-" + std::to_string(lane));
  part->set_size_bytes(10);
  part->set_xxh3(lane + 1);
  return beat;
}

HeartbeatRequest WithStep(HeartbeatRequest beat, uint32_t virtual_worker, uint64_t clock) {
  beat.set_started(true);
  beat.set_clock(clock);
  StepReport* step = beat.add_steps();
  step->set_virtual_worker(virtual_worker);
  step->set_clock(clock);
  step->set_loss_sum(5);
  step->set_tokens(2);
  step->set_targets(2);
  return beat;
}

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

TEST(Coordinator, RefusesANodeTooMany) {
  JobUnderTest job(1, 2);
  job.Join(WORKER, 1);
  job.Join(WORKER, 2);
  const auto reply = job.coordinator().OnRegister(job.Request(WORKER, 3), job.now());
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(reply.status().message()),
            "job has its 2 workers already; raise cluster.workers or stop one");
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
            "server 2 (host, pid 2) was lost: no heartbeat for 5.5 s; "
            "resume with: tug train JOB --resume /runs/job-1 (step 5)");
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
  job.Pass(absl::Milliseconds(1900));
  EXPECT_TRUE(job.Take<JobEnded>().empty());
  job.Pass(absl::Milliseconds(200));
  const auto ended = job.Take<JobEnded>();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(std::string(ended[0].status.message()),
            "worker 2 (host, pid 101) failed: the data file is gone: put it back; "
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

TEST(Coordinator, FailsWhenACheckpointCannotBeWritten) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  HeartbeatRequest beat = job.ReadyBeat(1);
  CheckpointPart* part = beat.add_parts();
  part->set_version(4);
  part->set_error("no space left on device: free some");
  EXPECT_EQ(
      job.Send(beat).failure(),
      "server 1 (host, pid 1) cannot write the checkpoint of step 4: no space left on device: free "
      "some; no checkpoint was written yet: start the job again");
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

TEST(Coordinator, StopsAtTheStepAfterTheLatestOneBegun) {
  JobUnderTest job(1, 2, 100);
  job.Run(1, 2);
  job.Send(WithStep(job.ReadyBeat(2), 0, 6));
  job.Send(WithStep(job.ReadyBeat(3), 1, 7));
  EXPECT_FALSE(job.coordinator().OnStop(job.now()).message().empty());

  // Worker 2 acknowledges, having begun step 7 meanwhile; worker 3 has begun step 8 before it takes
  // the order.
  HeartbeatReply reply = job.Send(WithStep(job.ReadyBeat(2), 0, 7));
  EXPECT_TRUE(reply.pause());
  EXPECT_EQ(reply.final_version(), 0u);
  HeartbeatRequest paused = WithStep(job.ReadyBeat(2), 0, 7);
  paused.set_pausing(true);
  EXPECT_TRUE(job.Send(paused).pause());
  HeartbeatRequest other = WithStep(job.ReadyBeat(3), 1, 8);
  EXPECT_TRUE(job.Send(other).pause());
  job.coordinator().OnStop(job.now());  // again: changes nothing
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

// ---- evaluations ----

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
  EXPECT_THAT(notices[0].text, HasSubstr("step 20 (validation loss 2.0000) for 2 in a row"));
  last.set_pausing(true);
  EXPECT_EQ(job.Send(last).final_version(), 42u);
  const StatusReply status = job.coordinator().OnStatus(job.now());
  EXPECT_TRUE(status.stopped_early());
  EXPECT_EQ(status.best().version(), 20u);
  EXPECT_EQ(status.best().loss(), 2.0);
}

TEST(Evaluations, OfTheRunThatGoesOnCount) {
  CoordinatorOptions options = WithPatience(2);
  options.start_version = 20;
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

TEST(Evaluations, ThatAreNeverFiniteEndTheJobWithTheRemedy) {
  JobUnderTest job(WithPatience(2));
  job.Run(1, 1);
  const HeartbeatRequest beat = WithStep(job.ReadyBeat(2), 0, 21);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(job.Send(WithEval(beat, 10, nan)).pause());
  EXPECT_TRUE(job.Send(WithEval(beat, 20, nan)).pause());
  const auto notices = job.Take<NoticeAction>();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].text,
            "no evaluation had a finite loss, 2 in a row: lower optimizer.learning_rate");
  EXPECT_TRUE(job.coordinator().OnStatus(job.now()).stopped_early());
  EXPECT_FALSE(job.coordinator().OnStatus(job.now()).has_best());
}

TEST(Evaluations, OverTheWholeSplitInTheRunThatGoesOnAreNoMeasureForSampledOnes) {
  CoordinatorOptions options = WithPatience(1);
  options.start_version = 10;
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

// ---- blocks that the workers declare ----

RegisterRequest Declaring(RegisterRequest request, uint64_t elements) {
  for (const char* name : {"weights", "bias"}) {
    BlockSpec* block = request.mutable_blocks()->add_blocks();
    block->set_name(name);
    TensorSpec* tensor = block->add_tensors();
    tensor->set_name(name);
    tensor->add_shape(elements);
  }
  return request;
}

CoordinatorOptions ExternalJob(uint32_t workers) {
  CoordinatorOptions options = JobUnderTest::Options(1, workers, 10, 0, workers);
  options.config.mutable_model()->set_external(true);
  options.config.mutable_comm()->set_segment_elements(1024);
  options.layout = {};
  return options;
}

std::string RefusalOf(Coordinator& coordinator, const RegisterRequest& request) {
  const absl::Status refused = coordinator.OnRegister(request, absl::UnixEpoch()).status();
  EXPECT_FALSE(refused.ok());
  return std::string(refused.message());
}

TEST(ExternalModel, TheViewHasTheBlocksOfTheFirstWorker) {
  JobUnderTest job(ExternalJob(2));
  const uint32_t server = job.Join(SERVER, 1);
  EXPECT_FALSE(job.Send(job.Beat(server)).has_view());
  for (const uint64_t incarnation : {7, 8}) {
    const auto request = Declaring(job.Request(WORKER, incarnation), 2000);
    ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
    ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok()) << "repeated";
  }
  const HeartbeatReply reply = job.Send(job.Beat(server));
  ASSERT_TRUE(reply.has_view());
  ASSERT_EQ(reply.view().blocks().blocks_size(), 2);
  EXPECT_EQ(reply.view().blocks().blocks(1).name(), "bias");
  EXPECT_EQ(reply.view().lane_of_segment_size(), 4);  // 2000 elements: two segments
  EXPECT_EQ(reply.view().workers_size(), 2);
}

TEST(ExternalModel, RefusesOtherBlocksThanTheFirstWorkers) {
  JobUnderTest job(ExternalJob(2));
  ASSERT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now()).ok());
  EXPECT_THAT(RefusalOf(job.coordinator(), Declaring(job.Request(WORKER, 8), 2001)),
              HasSubstr("block 0 is 'weights' of 2001 elements"));
  // It can come back with the right ones.
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 2000), job.now()).ok());
}

TEST(ExternalModel, AWorkerThatIsLostTakesItsBlocksAlong) {
  JobUnderTest job(ExternalJob(2));
  ASSERT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now()).ok());
  job.Pass(absl::Seconds(6));
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 5000), job.now()).ok());
}

TEST(ExternalModel, AWorkerThatIsRefusedLeavesNothing) {
  JobUnderTest job(ExternalJob(2));
  RegisterRequest request = Declaring(job.Request(WORKER, 7), 2000);
  request.add_lane_endpoints("tcp://h:1");
  EXPECT_THAT(RefusalOf(job.coordinator(), request), HasSubstr("has no lanes"));
  EXPECT_TRUE(
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 8), 5000), job.now()).ok());
}

TEST(ExternalModel, CheckpointsHoldTheBlocksAndAFailureSaysHowToGoOn) {
  JobUnderTest job(ExternalJob(1));
  const uint32_t server = job.Join(SERVER, 1);
  const auto worker =
      job.coordinator().OnRegister(Declaring(job.Request(WORKER, 7), 2000), job.now());
  ASSERT_TRUE(worker.ok());
  job.Send(job.ReadyBeat(server));
  job.Send(job.ReadyBeat(worker->node_id()));
  job.Send(WithPart(WithPart(job.Beat(server), 0, 5), 1, 5));
  const auto commits = job.Take<CommitCheckpointAction>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].manifest.blocks().blocks_size(), 2);
  job.coordinator().OnCheckpointCommitted(5, absl::OkStatus(), job.now());
  job.Pass(absl::Seconds(6));
  EXPECT_THAT(job.Send(job.Beat(server)).failure(),
              HasSubstr("resume with: tug coordinator JOB --resume"));
}

// A server (1) and a worker (2), of which steps 3 and 4 are traced; and 10 steps in all.
class TracedJob : public JobUnderTest {
 public:
  TracedJob() : JobUnderTest(Traced()) { Run(1, 1); }

  static CoordinatorOptions Traced() {
    CoordinatorOptions options = Options(1, 1, 10, 0, 1);
    options.config.mutable_trace()->set_first_step(3);
    options.config.mutable_trace()->set_steps(2);
    options.layout.blocks.add_blocks()->set_name("embedding");
    return options;
  }

  HeartbeatReply Step(uint64_t clock) { return Send(WithStep(ReadyBeat(2), 0, clock)); }
  absl::Status SendChunk(uint32_t node_id) {
    TraceChunk chunk;
    chunk.set_node_id(node_id);
    chunk.set_job(kJob);
    chunk.set_track_name("track");
    chunk.add_spans()->set_clock(2);
    return coordinator().OnTrace(chunk, now()).status();
  }
  HeartbeatRequest Sent(uint32_t node_id) const {
    HeartbeatRequest beat = ReadyBeat(node_id);
    beat.set_trace_sent(true);
    return beat;
  }
  // The last step is done and its checkpoint committed.
  void EndAllSteps() {
    for (uint64_t clock = 0; clock < 10; ++clock) Step(clock);
    for (uint32_t lane = 0; lane < 2; ++lane) Send(WithPart(ReadyBeat(1), lane, 10));
    coordinator().OnCheckpointCommitted(10, absl::OkStatus(), now());
    HeartbeatRequest finished = ReadyBeat(2);
    finished.set_finished(true);
    Send(finished);
  }
};

TEST(TracedCoordinator, AsksForTheTraceOnceTheStepAfterTheLastTracedIsDone) {
  TracedJob job;
  for (uint64_t clock = 0; clock < 4; ++clock) EXPECT_FALSE(job.Step(clock).trace_wanted());
  EXPECT_TRUE(job.Step(4).trace_wanted());
  ASSERT_TRUE(job.SendChunk(1).ok());
  ASSERT_TRUE(job.SendChunk(2).ok());
  EXPECT_TRUE(job.Send(job.Sent(1)).trace_wanted());
  EXPECT_TRUE(job.Take<TraceCompleted>().empty());
  EXPECT_FALSE(job.Send(job.Sent(2)).trace_wanted());
  const auto completed = job.Take<TraceCompleted>();
  ASSERT_EQ(completed.size(), 1u);
  const JobTrace& trace = completed[0].trace;
  EXPECT_EQ(trace.range.first, 2u);
  EXPECT_EQ(trace.range.end, 4u);
  EXPECT_EQ(trace.block_names, std::vector<std::string>{"embedding"});
  EXPECT_TRUE(trace.silent.empty());
  ASSERT_EQ(trace.nodes.size(), 2u);
  EXPECT_EQ(trace.nodes[0].kind, SERVER);
  EXPECT_EQ(trace.nodes[1].name, "worker 2 (host, pid 101)");
  EXPECT_EQ(trace.nodes[1].tracks[0].events.size(), 1u);
}

TEST(TracedCoordinator, DoesNotEndBeforeTheTraceIsIn) {
  TracedJob job;
  job.EndAllSteps();
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  EXPECT_TRUE(job.Send(job.ReadyBeat(1)).trace_wanted());
  job.Send(job.Sent(1));
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  job.Send(job.Sent(2));
  EXPECT_EQ(job.coordinator().phase(), DONE);
  EXPECT_EQ(job.Take<TraceCompleted>().size(), 1u);
}

TEST(TracedCoordinator, EndsWithoutANodeThatSendsNothing) {
  TracedJob job;
  job.EndAllSteps();
  ASSERT_TRUE(job.SendChunk(1).ok());
  job.Send(job.Sent(1));
  for (absl::Duration passed; passed < Coordinator::kTracePatience; passed += absl::Seconds(3)) {
    EXPECT_EQ(job.coordinator().phase(), RUNNING);
    job.Send(job.ReadyBeat(1));
    job.Send(job.ReadyBeat(2));
    job.Pass(absl::Seconds(3));
  }
  EXPECT_EQ(job.coordinator().phase(), DONE);
  const auto completed = job.Take<TraceCompleted>();
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].trace.nodes.size(), 1u);
  EXPECT_EQ(completed[0].trace.silent, std::vector<std::string>{"worker 2 (host, pid 101)"});
}

TEST(TracedCoordinator, TakesATraceOfMembersOnly) {
  TracedJob job;
  EXPECT_EQ(job.SendChunk(9).code(), absl::StatusCode::kNotFound);
}

TEST(Coordinator, TellsItsTimeAndWantsNoTraceUnlessAsked) {
  JobUnderTest job(1, 1);
  job.Run(1, 1);
  job.Pass(absl::Nanoseconds(1234));
  for (uint64_t clock = 0; clock < 10; ++clock) {
    const HeartbeatReply reply = job.Send(WithStep(job.ReadyBeat(2), 0, clock));
    EXPECT_EQ(reply.now_ns(), 1234);
    EXPECT_FALSE(reply.trace_wanted());
  }
}

}  // namespace
}  // namespace tug
