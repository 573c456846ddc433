// SPDX-License-Identifier: Apache-2.0
// Tests that a node that finds the job full waits for a slot for a while.

#include <algorithm>
#include <string>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

const absl::Duration kPatience = absl::Seconds(5) + Membership::kEndsMeanwhile;
constexpr uint64_t kNewcomer = 900;  // incarnation of a new node

// One server (node 1) and two workers (nodes 2 and 3). Nodes in `living_` send heartbeats.
class FullJob : public ::testing::Test {
 protected:
  FullJob() : FullJob(JobUnderTest::Options(1, 2, 10, 0, 2)) {}
  explicit FullJob(const CoordinatorOptions& options) : job_(options) {
    job_.coordinator().KeepJournal(&journal_);
  }

  absl::StatusOr<RegisterReply> Ask(uint64_t incarnation = kNewcomer, NodeKind kind = WORKER) {
    return job_.coordinator().OnRegister(job_.Request(kind, incarnation), job_.now());
  }
  absl::StatusCode Answer() { return Ask().status().code(); }
  // Nodes keep sending heartbeats, without reports.
  void Pass(absl::Duration time) {
    for (const absl::Time end = job_.now() + time; job_.now() < end;) {
      job_.Pass(std::min(absl::Milliseconds(250), end - job_.now()));
      for (const uint32_t id : living_) job_.Send(job_.ReadyBeat(id));
    }
  }

  MemoryJournal journal_;
  JobUnderTest job_;
  std::vector<uint32_t> living_ = {1, 2, 3};
};

TEST_F(FullJob, ANodeTooManyWaitsForAWhileAndIsThenRefused) {
  job_.Run(1, 2);
  EXPECT_EQ(std::string(Ask().status().message()),
            "the job is full (2 workers); waiting up to 15s for a worker to be lost or to leave. "
            "To add a worker instead, raise cluster.workers; otherwise stop this one");
  while (Answer() == absl::StatusCode::kAborted) Pass(absl::Milliseconds(250));
  EXPECT_EQ(job_.now(), absl::UnixEpoch() + kPatience);
  // The next node waits from its own start.
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  Pass(kPatience);
  const absl::Status refusal = Ask().status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(refusal.message()),
            "the job is full (2 workers). To add a worker instead, raise cluster.workers; "
            "otherwise stop another one first");
}

TEST_F(FullJob, BeforeTheJobBeginsTooANodeWaitsForAPlace) {
  job_.Join(WORKER, 101);
  job_.Join(WORKER, 102);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  job_.coordinator().OnGone(2, kJob, job_.now());
  EXPECT_TRUE(Ask().ok());
}

TEST_F(FullJob, WaitingNodeIsNotCountedAndReplacesLostNode) {
  job_.Run(1, 2);
  living_ = {1, 2};
  while (Answer() == absl::StatusCode::kAborted) {
    EXPECT_EQ(job_.coordinator().OnStatus(job_.now()).nodes_size(), 3);
    Pass(absl::Milliseconds(250));
  }
  EXPECT_EQ(job_.now(), absl::UnixEpoch() + absl::Milliseconds(5250)) << "the failure timeout";
  EXPECT_EQ(Ask()->node_id(), 4u);
  EXPECT_EQ(Ask(kNewcomer + 1).status().code(), absl::StatusCode::kAborted) << "full again";
}

TEST_F(FullJob, DrainedWorkerMakesRoomAtOnce) {
  job_.Run(1, 2);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  ASSERT_TRUE(job_.coordinator().OnDrain("worker-1", job_.now()).ok());
  EXPECT_TRUE(Ask().ok());
}

TEST_F(FullJob, AWaitCostsNoRecordAndBeginsAnewWhereTheJobIsTakenUp) {
  job_.Run(1, 2);
  const uint64_t before = journal_.position();
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  Pass(kPatience - absl::Seconds(1));
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  EXPECT_EQ(journal_.position(), before);

  Coordinator again(JobUnderTest::Options(1, 2, 10, 0, 2));
  for (const JournalRecord& record : journal_.records()) ASSERT_TRUE(again.Replay(record).ok());
  again.OnTakenUp(job_.now());
  // The worker that it replaces died meanwhile; the others have found the new coordinator.
  const absl::Time lost = job_.now() + absl::Milliseconds(5001);
  const auto ask = [&](absl::Time now) {
    again.OnTick(now);
    return again.OnRegister(job_.Request(WORKER, kNewcomer), now).status().code();
  };
  for (int second = 0; second < 5; ++second) {
    EXPECT_EQ(ask(job_.now() + absl::Seconds(second)), absl::StatusCode::kAborted);
  }
  EXPECT_EQ(ask(lost - absl::Milliseconds(1)), absl::StatusCode::kAborted);
  for (const uint32_t id : {1, 2}) {
    ASSERT_TRUE(again.OnHeartbeat(job_.ReadyBeat(id), lost - absl::Milliseconds(1)).ok());
  }
  EXPECT_EQ(ask(lost), absl::StatusCode::kOk);
}

TEST_F(FullJob, TheEndIsToldToWhoWaitsBeforeTheCoordinatorGoes) {
  job_.Join(WORKER, 101);
  job_.Join(WORKER, 102);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  job_.coordinator().OnStop(job_.now());
  for (const uint32_t id : {1, 2}) EXPECT_EQ(job_.Send(job_.Beat(id)).phase(), DONE);
  job_.Pass(absl::Milliseconds(500));
  EXPECT_TRUE(job_.Take<JobEnded>().empty());
  EXPECT_EQ(Answer(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(job_.Take<JobEnded>().size(), 1u);
}

TEST_F(FullJob, ANodeThatWaitsIsToldWhyTheJobFailed) {
  job_.Run(1, 2);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  job_.coordinator().OnTrouble("the disk is full", job_.now());
  const absl::Status refusal = Ask().status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("the disk is full"));
}

TEST_F(FullJob, VanishedWaitingNodeDelaysEndOnlyBriefly) {
  job_.Join(WORKER, 101);
  job_.Join(WORKER, 102);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted);
  job_.coordinator().OnStop(job_.now());
  for (const uint32_t id : {1, 2}) job_.Send(job_.Beat(id));
  job_.Pass(WaitingNodes::kAsksWithin);
  EXPECT_TRUE(job_.Take<JobEnded>().empty());
  job_.Pass(absl::Milliseconds(50));
  EXPECT_EQ(job_.Take<JobEnded>().size(), 1u);
}

TEST_F(FullJob, AServerWaitsUntilTheJobTakesFurtherOnes) {
  job_.Join(SERVER, 1);
  EXPECT_EQ(Ask(kNewcomer, SERVER).status().code(), absl::StatusCode::kAborted);
  job_.Join(WORKER, 101);
  job_.Join(WORKER, 102);
  EXPECT_TRUE(Ask(kNewcomer, SERVER).ok());
}

CoordinatorOptions Backup() {
  CoordinatorOptions options = JobUnderTest::Options(1, 2, 10, 0, 2);
  options.config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  return options;
}

class FullBackupJob : public FullJob {
 protected:
  FullBackupJob() : FullJob(Backup()) {}
};

TEST_F(FullBackupJob, RefusesWorkerWhenNoPlaceCanBecomeFree) {
  job_.Join(WORKER, 101);
  job_.Join(WORKER, 102);
  EXPECT_EQ(Answer(), absl::StatusCode::kAborted) << "the job has not begun";
  job_.Join(SERVER, 1);
  const absl::Status refusal = Ask().status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(refusal.message()),
            "the job is full (2 workers). To add a worker instead, raise cluster.workers; "
            "otherwise stop another one first");
}

}  // namespace
}  // namespace tug
