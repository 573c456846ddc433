// SPDX-License-Identifier: Apache-2.0
// Killed coordinators: another process recovers the job from the journal while nodes continue, and
// the job ends with the bits of an undisturbed run. Real processes.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSteps = 1500;
constexpr uint64_t kCheckpoints = 30;
const Texts kJob = {"train.steps=1500", "checkpoint.interval=50", "train.eval_interval=250"};
// Slows the job down enough to be killed in time; changes no bit.
const Texts kSlow = {"straggler.slowdown=6"};
// Long enough for several kills and waits, on any machine.
const Texts kSlower = {"straggler.slowdown=25"};

class CoordinatorRecoveryTest : public DaemonTest {
 protected:
  // Number of metrics.jsonl lines of a kind, by step.
  std::map<uint64_t, int> LinesByStep(const std::string& run, const std::string& kind) const {
    std::ifstream file(Path(run) + "/" + kMetricsFile);
    std::map<uint64_t, int> lines;
    for (std::string line; std::getline(file, line);) {
      if (file.eof() || !absl::StrContains(line, absl::StrCat("\"kind\":\"", kind, "\""))) continue;
      const std::vector<std::string> parts = absl::StrSplit(line, "\"step\":");
      uint64_t step = 0;
      const std::string digits = parts.at(1).substr(0, parts[1].find_first_not_of("0123456789"));
      EXPECT_TRUE(absl::SimpleAtoi(digits, &step)) << line;
      ++lines[step];
    }
    return lines;
  }
  void ExpectEachStepOnce(const std::string& run) const {
    const std::map<uint64_t, int> steps = LinesByStep(run, "step");
    EXPECT_EQ(steps.size(), kSteps);
    for (const auto& [step, lines] : steps) EXPECT_EQ(lines, 1) << "step " << step;
    const std::map<uint64_t, int> checkpoints = LinesByStep(run, "checkpoint");
    for (const auto& [step, lines] : checkpoints) EXPECT_EQ(lines, 1) << "checkpoint " << step;
    EXPECT_LE(checkpoints.size(), kCheckpoints);
    EXPECT_TRUE(checkpoints.contains(kSteps));
    EXPECT_EQ(LinesByStep(run, "eval"), LinesByStep("undisturbed", "eval"));
    EXPECT_EQ(LinesByStep(run, "end").size(), 1u);
  }
  CheckpointState StateOf(const std::string& run) const {
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(CheckpointState());
  }
  // Newest step in metrics.jsonl.
  uint64_t Step(const std::string& run) const {
    const auto steps = LinesByStep(run, "step");
    return steps.empty() ? 0 : steps.rbegin()->first;
  }
  // Kills the coordinator, then waits until the next one has logged a later step. Returns the time
  // it took.
  absl::Duration KillCoordinator(Process& train, const std::string& run) {
    const std::vector<pid_t> before = Pids("coordinator");
    EXPECT_EQ(before.size(), 1u);
    const absl::Time begin = absl::Now();
    kill(before.back(), SIGKILL);
    const auto taken_up = [&] {
      const std::vector<pid_t> now = Pids("coordinator");
      return now.size() == 1 && now != before;
    };
    EXPECT_TRUE(train.WaitUntil(taken_up, After(kPatience))) << train.err();
    const uint64_t step = Step(run);
    EXPECT_TRUE(train.WaitUntil([&] { return Step(run) > step; }, After(kPatience))) << train.err();
    return absl::Now() - begin;
  }
};

TEST_F(CoordinatorRecoveryTest, ALocalJobOutlivesItsCoordinatorAgainAndAgain) {
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", kJob));
  Process& train = StartTraining("run", kJob + kSlower);
  for (int death = 1; death <= 3; ++death) {
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", Step("run") + 40));
    // Three crashes in a row, each soon after a start, end the job: the third one here comes later.
    if (death == 3) {
      const absl::Time old = After(absl::Seconds(5));
      ASSERT_TRUE(train.WaitUntil([&] { return absl::Now() > old; }, After(kPatience)));
    }
    const absl::Duration recovery = KillCoordinator(train, "run");
    std::cout << "coordinator killed " << death << " times: the next step was told after "
              << absl::ToInt64Milliseconds(recovery) << " ms" << std::endl;
  }
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  ExpectNobodyLeft();
  EXPECT_THAT(train.err(), AllOf(HasSubstr("was killed by signal 9 (Killed): starting another one "
                                           "to recover the job"),
                                 Not(HasSubstr("was lost: no heartbeat")),
                                 HasSubstr("done: 1500 of 1500 steps")));
  ExpectSameState(StateOf("undisturbed"), StateOf("run"));
  ExpectEachStepOnce("run");
  EXPECT_EQ(LinesByStep("run", "checkpoint").size(), kCheckpoints);
  const absl::StatusOr<Losses> expected = ReadLosses(Path("undisturbed"));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(expected.ok() && losses.ok());
  ExpectSameLosses(*expected, *losses);
  EXPECT_FALSE(fs::exists(Path("run") + "/" + kJournalFile)) << "there is nothing to take up";
}

TEST_F(CoordinatorRecoveryTest, DaemonsGoOnAlonePastAWholeFailureTimeoutAndAreTakenUp) {
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", kJob));
  ASSERT_NO_FATAL_FAILURE(StartJob(kJob + kSlower + Texts{"fault.failure_timeout_ms=1000"}));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", 30));
  coordinator().Signal(SIGKILL);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  const uint64_t told = Step("run");
  const Process& status = Run({"status", Path("run")});
  ExpectErrorLine(status,
                  {"no reply from the coordinator", "tug coordinator --recover " + Path("run")});
  // Longer than the failure timeout of a silent node.
  const absl::Time later = After(absl::Milliseconds(1500));
  for (Process* node : nodes_) ASSERT_FALSE(node->WaitForEnd(later));
  // The nodes kept training: lanes wrote checkpoints that are not committed.
  EXPECT_FALSE(fs::is_empty(Path("run/checkpoints")));
  Process& successor = Start({"coordinator", "--recover", Path("run")});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(successor, "run", told + 1));
  ASSERT_EQ(Run({"status", Path("run")}).exit_code(), 0);
  ExpectErrorLine(Run({"coordinator", "--recover", Path("run")}),
                  {"another coordinator is running in " + Path("run")});
  ASSERT_TRUE(successor.WaitForEnd(After(kPatience))) << successor.err();
  ASSERT_EQ(successor.exit_code(), 0) << successor.err();
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    EXPECT_EQ(node->exit_code(), 0) << node->err();
  }
  ExpectSameState(StateOf("undisturbed"), StateOf("run"));
  ExpectEachStepOnce("run");
  ExpectErrorLine(Run({"coordinator", "--recover", Path("run")}),
                  {"cannot be recovered", "continue it with: tug train --resume " + Path("run")});
}

// The worker dies after the coordinator: nodes must have reopened the calls whose end reports a
// death.
TEST_F(CoordinatorRecoveryTest, AWorkerThatDiesAfterwardsIsSeenToAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", kJob));
  Process& train = StartTraining("run", kJob + kSlow);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 40));
  KillCoordinator(train, "run");
  // By then each node has had time to reopen its call, after the first reply of the new
  // coordinator.
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", Step("run") + 100));
  kill(Pids("worker").back(), SIGKILL);
  const auto lost = [&] {
    return absl::StrContains(train.err(), "was lost: its connection was closed");
  };
  ASSERT_TRUE(train.WaitUntil(lost, After(kPatience))) << train.err();
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  ExpectNobodyLeft();
  ExpectSameState(StateOf("undisturbed"), StateOf("run"));
}

TEST_F(CoordinatorRecoveryTest, AStopThatWasHeardIsObeyedByTheSuccessor) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 20));
  KillCoordinator(train, "run");
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

TEST_F(CoordinatorRecoveryTest, ACoordinatorThatDiesAgainAndAgainEndsTheJob) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  const auto killed = [&] {
    for (const pid_t pid : Pids("coordinator")) kill(pid, SIGKILL);
    return false;
  };
  ASSERT_FALSE(train.WaitUntil(killed, After(kPatience)));
  ASSERT_TRUE(train.ended()) << "the job goes on";
  ExpectErrorLine(train, {"coordinator (pid ", "--resume " + Path("run")});
  ExpectNobodyLeft();
  ExpectResumes("run");
}

// Simulates a file system that lost the latest writes, or a copy made during a write.
TEST_F(CoordinatorRecoveryTest, AJournalThatLostItsEndIsNotTakenUp) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"checkpoint.interval=20"}));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", 5));
  const std::string path = Path("run") + "/" + kJournalFile;
  const std::string begun = ReadText(path);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", 100));
  coordinator().Signal(SIGKILL);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  Write("run/" + std::string(kJournalFile), begun);
  ExpectErrorLine(Run({"coordinator", "--recover", Path("run")}),
                  {path, "is truncated", "tug train --resume " + Path("run")});
  for (Process* node : nodes_) {
    node->Signal(SIGKILL);
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
  }
  Process& next = Start({"train", job(), "--resume", Path("run"), "--set", "train.steps=200"});
  ASSERT_TRUE(next.WaitForEnd(After(kPatience))) << next.err();
  EXPECT_EQ(next.exit_code(), 0) << next.err();
}

TEST_F(CoordinatorRecoveryTest, RefusedRecoveryNamesTheRemedy) {
  ExpectErrorLine(Run({"coordinator", "--recover", Path("nowhere")}), {"nowhere", "run folder"});
  ExpectErrorLine(Run({"coordinator"}), {"no job given", "--recover"});
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  coordinator().Signal(SIGKILL);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  const std::string path = Path("run") + "/" + kJournalFile;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.put('\x7f');
  file.close();
  ExpectErrorLine(Run({"coordinator", "--recover", Path("run")}),
                  {path, "is damaged", "tug train --resume " + Path("run")});
  for (Process* node : nodes_) {
    node->Signal(SIGKILL);
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
  }
}

}  // namespace
}  // namespace tug
