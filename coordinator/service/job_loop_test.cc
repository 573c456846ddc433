// SPDX-License-Identifier: Apache-2.0
// Tests a job whose coordinator died, and the actions that are left to its successor.

#include "coordinator/service/job_loop.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/standard_error.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator_test_support.h"
#include "coordinator/observe/metrics_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/layout.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One server with two lanes, one worker: a checkpoint of step 2 is complete, steps 1 to 3 are done.
class JobLoopTest : public ::testing::Test {
 protected:
  JobLoopTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    options_ = JobUnderTest::Options(1, 1, 10, 0, 1);
    options_.config.mutable_checkpoint()->set_keep(2);
    options_.run_dir = root_.string();
  }

  // Runs the first coordinator. `answered`: it got the result of its commit.
  void LiveUntilItDies(bool answered) {
    JobUnderTest job(options_);
    job.coordinator().KeepJournal(&journal_);
    job.Run(1, 1);
    for (uint64_t clock = 0; clock < 2; ++clock) job.Send(WithStep(job.ReadyBeat(2), 0, clock));
    HeartbeatRequest parts = job.ReadyBeat(1);
    for (uint32_t lane = 0; lane < 2; ++lane) {
      parts = WithPart(std::move(parts), lane, 2);
      const PartFile file = WriteLanePart(root_.string(), 2, lane, {}).value();
      CheckpointPart& part = *parts.mutable_parts(static_cast<int>(lane));
      part.set_file(file.name);
      part.set_size_bytes(file.size_bytes);
      part.set_xxh3(file.xxh3);
    }
    job.Send(parts);
    job.Send(WithStep(job.ReadyBeat(2), 0, 2));
    if (answered) {
      job.coordinator().OnCheckpointCommitted(2, absl::OkStatus(), job.now());
    }
    for (const Action& action : job.coordinator().TakeActions()) {
      const auto* commit = std::get_if<CommitCheckpointAction>(&action);
      if (commit != nullptr) commit_ = *commit;
    }
    ASSERT_EQ(commit_.manifest.version(), 2u);
  }

  // Runs the second coordinator until the job ends. `metrics`: metrics.jsonl as the first one left
  // it. Returns the kinds of its lines at the end.
  std::vector<std::string> GoOn(const std::string& metrics) {
    const std::string path = (root_ / "metrics.jsonl").string();
    std::ofstream(path) << metrics;
    RunReporter reporter(
        MetricsLog::Continue(path, 1, 0).value(),
        RunExports::Open(options_.config, {.run_dir = root_.string(), .taken_up = true}).value(),
        {.out = WriteStandardError, .terminal = false}, root_.string(), "title", options_.config,
        absl::UnixEpoch());
    const CoordinatorDaemonOptions daemon;
    JobLoop loop(reporter, options_.config, root_.string(), daemon);
    auto again = std::make_unique<Coordinator>(options_);
    for (const JournalRecord& record : journal_.records()) {
      EXPECT_TRUE(again->Replay(record).ok());
      loop.Recall(record, again->TakeActions());
    }
    again->KeepJournal(&journal_);
    // Ends the job: all nodes are notified.
    again->OnTrouble("enough", absl::UnixEpoch());
    for (const uint32_t id : {1u, 2u}) {
      HeartbeatRequest beat;
      beat.set_node_id(id);
      beat.set_job(kJob);
      EXPECT_TRUE(again->OnHeartbeat(beat, absl::UnixEpoch()).ok());
    }
    const auto service = ControlService::Start(std::move(again), &journal_, {"127.0.0.1", 0});
    EXPECT_TRUE(service.ok()) << service.status();
    EXPECT_THAT(std::string(loop.Run(**service).message()), HasSubstr("enough"));
    std::vector<std::string> kinds;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> parts = absl::StrSplit(line, '"');
      kinds.push_back(parts.at(3));
    }
    return kinds;
  }
  int Answers() const {
    int answers = 0;
    for (const JournalRecord& record : journal_.records()) answers += record.has_committed();
    return answers;
  }
  bool IsCommitted() const { return FindCheckpoint(CheckpointPath(root_.string(), 2)).ok(); }

  static constexpr char kStep[] = "{\"kind\":\"step\"}\n";
  static constexpr char kCheckpoint[] = "{\"kind\":\"checkpoint\"}\n";
  const fs::path root_ = fs::path(::testing::TempDir()) / "job_loop_test";
  CoordinatorOptions options_;
  MemoryJournal journal_;
  CommitCheckpointAction commit_;
};

TEST_F(JobLoopTest, DoesAllThatTheOneBeforeHadNotDone) {
  LiveUntilItDies(false);
  EXPECT_THAT(GoOn(""), ElementsAre("step", "step", "checkpoint", "step"));
  EXPECT_TRUE(IsCommitted());
  EXPECT_EQ(Answers(), 1);
}

TEST_F(JobLoopTest, WritesNoLineTwiceWhereverTheOneBeforeDied) {
  LiveUntilItDies(false);
  const std::string lines = std::string(kStep) + kStep;
  for (size_t size = 0; size <= lines.size(); ++size) {
    fs::remove_all(root_ / "checkpoints");
    MemoryJournal journal = journal_;
    journal_ = MemoryJournal();
    LiveUntilItDies(false);
    EXPECT_THAT(GoOn(lines.substr(0, size)), ElementsAre("step", "step", "checkpoint", "step"))
        << size;
    journal_ = journal;
  }
}

TEST_F(JobLoopTest, ACommitThatWasCarriedOutAndNotAnsweredIsNotCarriedOutAgain) {
  for (const bool line_written : {false, true}) {
    journal_ = MemoryJournal();
    fs::remove_all(root_ / "checkpoints");
    LiveUntilItDies(false);
    ASSERT_TRUE(CommitCheckpoint(root_.string(), commit_.manifest, {.keep = 2}).ok());
    const auto before = fs::last_write_time(CheckpointPath(root_.string(), 2));
    const std::string lines = std::string(kStep) + kStep + (line_written ? kCheckpoint : "");
    EXPECT_THAT(GoOn(lines), ElementsAre("step", "step", "checkpoint", "step"));
    EXPECT_EQ(fs::last_write_time(CheckpointPath(root_.string(), 2)), before);
    EXPECT_EQ(Answers(), 1);
  }
}

TEST_F(JobLoopTest, ACommitThatWasAnsweredIsOnlyRemembered) {
  LiveUntilItDies(true);
  fs::remove_all(root_ / "checkpoints");
  EXPECT_THAT(GoOn(std::string(kStep) + kStep + kCheckpoint + kStep),
              ElementsAre("step", "step", "checkpoint", "step"));
  EXPECT_FALSE(IsCommitted()) << "nobody looked";
  EXPECT_EQ(Answers(), 1);
}

}  // namespace
}  // namespace tug
