// SPDX-License-Identifier: Apache-2.0
// Tests which inputs a coordinator journals, and recovery from them. Random histories:
// coordinator_replay_test.cc.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job driven by hand, with its journal.
class JournaledJob : public ::testing::Test {
 protected:
  JournaledJob() { job_.coordinator().KeepJournal(&journal_); }

  static CoordinatorOptions Options() {
    CoordinatorOptions options = JobUnderTest::Options(1, 2, 10, 0, 2);
    options.config.mutable_fault()->set_max_rollbacks(5);
    return options;
  }
  std::unique_ptr<Coordinator> Again() {
    auto again = std::make_unique<Coordinator>(Options());
    for (const JournalRecord& record : journal_.records()) {
      EXPECT_TRUE(again->Replay(record).ok());
    }
    return again;
  }

  MemoryJournal journal_;
  JobUnderTest job_{Options()};
};

TEST_F(JournaledJob, AHeartbeatThatSaysNothingNewCostsNoRecord) {
  job_.Run(1, 2);
  HeartbeatRequest worker = WithStep(job_.ReadyBeat(2), 0, 0);
  job_.Send(worker);
  HeartbeatRequest server = WithPart(job_.ReadyBeat(1), 0, 5);
  job_.Send(server);
  const uint64_t before = journal_.position();
  worker.clear_steps();  // acknowledged
  for (int i = 0; i < 100; ++i) {
    worker.mutable_counters()->set_peak_memory_bytes(static_cast<uint64_t>(i));
    worker.set_metrics_endpoint("10.0.0.2:9464");
    job_.Send(worker);
    job_.Send(server);  // lanes repeat their newest parts
    job_.Send(job_.ReadyBeat(3));
    job_.Pass(absl::Milliseconds(200));
    EXPECT_TRUE(job_.coordinator().OnRegister(job_.Request(WORKER, 101), job_.now()).ok());
  }
  EXPECT_EQ(journal_.position(), before);
  EXPECT_EQ(job_.coordinator().OnStatus(job_.now()).nodes(1).counters().peak_memory_bytes(), 99u)
      << "but is heard";
  EXPECT_EQ(job_.coordinator().OnStatus(job_.now()).nodes(1).metrics_endpoint(), "10.0.0.2:9464");
}

TEST_F(JournaledJob, MembersCountAsHeardOfWhenTheJobIsTakenUp) {
  job_.Run(1, 2);
  const auto again = Again();
  const absl::Time later = job_.now() + absl::Seconds(50);
  again->OnTakenUp(later);
  for (int second = 0; second <= 4; ++second) again->OnTick(later + absl::Seconds(second));
  EXPECT_EQ(again->OnStatus(later).nodes_size(), 3);
  ASSERT_TRUE(again->OnHeartbeat(job_.ReadyBeat(1), later + absl::Seconds(4)).ok());
  for (int second = 5; second <= 6; ++second) again->OnTick(later + absl::Seconds(second));
  EXPECT_EQ(again->OnStatus(later).nodes_size(), 1) << "who did not come back is lost";
}

TEST_F(JournaledJob, ASuccessorThatIsStoppedBeforeItsFirstTickLosesNobody) {
  job_.Run(1, 2);
  const auto again = Again();
  again->OnTakenUp(job_.now());
  again->OnTick(job_.now() + absl::Seconds(50));
  EXPECT_EQ(again->OnStatus(job_.now()).nodes_size(), 3);
}

TEST_F(JournaledJob, RecoveredEndedJobReportsItsEndAgainAndEnds) {
  job_.Run(1, 2);
  HeartbeatRequest failure = job_.ReadyBeat(2);
  failure.set_failure("no text");
  job_.Send(failure);
  job_.Send(job_.ReadyBeat(3));
  const auto again = Again();
  again->TakeActions();
  again->OnTakenUp(job_.now());
  for (const Action& action : again->TakeActions()) {
    EXPECT_FALSE(std::holds_alternative<JobEnded>(action));
  }
  EXPECT_EQ(again->OnHeartbeat(job_.ReadyBeat(1), job_.now())->phase(), FAILED);
  for (absl::Duration d; d <= again->told_grace(); d += absl::Milliseconds(100)) {
    again->OnTick(job_.now() + d);
  }
  const auto actions = again->TakeActions();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_THAT(std::string(std::get<JobEnded>(actions[0]).status.message()), HasSubstr("no text"));
}

TEST_F(JournaledJob, ACommitThatWasNotAnsweredIsStillAwaited) {
  job_.Run(1, 2);
  job_.Send(WithPart(WithPart(job_.ReadyBeat(1), 0, 5), 1, 5));
  ASSERT_EQ(job_.Take<CommitCheckpointAction>().size(), 1u);
  const auto again = Again();
  std::vector<uint64_t> commits;
  for (const Action& action : again->TakeActions()) {
    if (const auto* commit = std::get_if<CommitCheckpointAction>(&action)) {
      commits.push_back(commit->manifest.version());
    }
  }
  EXPECT_THAT(commits, ElementsAre(5));
  again->OnCheckpointCommitted(5, absl::OkStatus(), job_.now());
  EXPECT_EQ(again->OnStatus(job_.now()).last_checkpoint(), 5u);
}

TEST_F(JournaledJob, ATraceThatWasBeingGatheredIsLostAndTheJobGoesOn) {
  CoordinatorOptions options = Options();
  options.config.mutable_trace()->set_steps(1);
  options.config.mutable_trace()->set_first_step(1);
  JobUnderTest job(options);
  job.coordinator().KeepJournal(&journal_);
  job.Run(1, 2);
  for (uint64_t clock = 0; clock < 2; ++clock) {
    job.Send(WithStep(job.ReadyBeat(2), 0, clock));
    job.Send(WithStep(job.ReadyBeat(3), 1, clock));
  }
  ASSERT_TRUE(job.Send(job.ReadyBeat(2)).trace_wanted());
  Coordinator again(options);
  for (const JournalRecord& record : journal_.records()) ASSERT_TRUE(again.Replay(record).ok());
  again.TakeActions();
  again.OnTakenUp(job.now());
  EXPECT_FALSE(again.OnHeartbeat(job.ReadyBeat(2), job.now())->trace_wanted());
  const std::vector<Action> actions = again.TakeActions();
  ASSERT_EQ(actions.size(), 2u) << "that it was taken up, and this";
  EXPECT_THAT(std::get<NoticeAction>(actions[1]).text, HasSubstr("the trace is lost"));
}

TEST_F(JournaledJob, RecoveredCoordinatorPausesDrainingNode) {
  job_.Run(1, 2);
  ASSERT_TRUE(job_.coordinator().OnDrain("worker-1", job_.now()).ok());
  EXPECT_FALSE(job_.coordinator().OnDrain("server-0", job_.now()).ok()) << "the only server";
  const auto again = Again();
  again->OnTakenUp(job_.now());
  EXPECT_TRUE(again->OnHeartbeat(job_.ReadyBeat(3), job_.now())->pause());
  EXPECT_FALSE(again->OnHeartbeat(job_.ReadyBeat(2), job_.now())->pause());
}

TEST_F(JournaledJob, ANodeThatMayNotLeaveCostsOneRecordHoweverOftenItAsks) {
  job_.Run(1, 2);
  HeartbeatRequest leaving = job_.ReadyBeat(1);
  leaving.set_leaving(true);
  job_.Send(leaving);
  const uint64_t before = journal_.position();
  for (int i = 0; i < 10; ++i) job_.Send(leaving);
  EXPECT_EQ(journal_.position(), before);
}

TEST_F(JournaledJob, RefusesARecordThatCannotBeOfThisJob) {
  JournalRecord record;
  record.mutable_heartbeat()->set_node_id(9);
  Coordinator again(Options());
  EXPECT_EQ(again.Replay(record).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(again.Replay(JournalRecord()).code(), absl::StatusCode::kDataLoss);
}

TEST(CoordinatorJournal, OptionsSurviveTheJournal) {
  CoordinatorOptions options = JobUnderTest::Options(2, 3, 10, 4, 3);
  options.data_notice = "a notice";
  options.changed_settings = {"train.steps 8 -> 10", "seed 1 -> 2"};
  options.start = {.number = 3, .version = 4, .restore_path = "/c", .clocks = {4, 5, 6}};
  options.past_evals.push_back({.version = 2, .loss = 1.5, .accuracy = 0.5, .targets = 9});
  options.best = {2, 1.5};
  options.predicts_steps = true;
  const JournalBegin begin = BeginOf(options);
  EXPECT_EQ(BeginOf(OptionsOf(begin)).SerializeAsString(), begin.SerializeAsString());
  EXPECT_EQ(OptionsOf(begin).layout.segment_bytes, options.layout.segment_bytes);
  EXPECT_EQ(OptionsOf(begin).changed_settings, options.changed_settings);
}

}  // namespace
}  // namespace tug
