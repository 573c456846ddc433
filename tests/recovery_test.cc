// SPDX-License-Identifier: Apache-2.0
// A job with a killed process continues by itself, and ends with the bits of an undisturbed run.
// Real processes.

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Slows the job down enough to be killed in time; changes no bit.
const Texts kLong = {"train.steps=300", "straggler.slowdown=4", "checkpoint.interval=20",
                     "train.eval_interval=100"};

class RecoveryTest : public TugTest {
 protected:
  // Result of the undisturbed job.
  CheckpointState Undisturbed(const Texts& settings = {}) {
    Train("undisturbed",
          Texts{"train.steps=300", "checkpoint.interval=20", "train.eval_interval=100"} + settings);
    return StateOf("undisturbed");
  }
  CheckpointState StateOf(const std::string& run) const {
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(CheckpointState());
  }
  // Number of step lines in metrics.jsonl that contain `what`.
  size_t StepLines(const std::string& run, const std::string& what) const {
    std::ifstream file(Path(run) + "/metrics.jsonl");
    size_t count = 0;
    for (std::string line; std::getline(file, line);) {
      count += absl::StrContains(line, "\"kind\":\"step\"") && absl::StrContains(line, what);
    }
    return count;
  }
  // Kills the newest process of a kind, waits for `recovered`, and prints the time.
  void KillOne(Process& train, const std::string& kind, const std::string& run,
               const std::function<bool()>& recovered) {
    const std::vector<pid_t> pids = Pids(kind);
    ASSERT_EQ(pids.size(), 2u);
    const absl::Time begin = absl::Now();
    ASSERT_EQ(kill(pids.back(), SIGKILL), 0);
    ASSERT_TRUE(train.WaitUntil(recovered, After(kPatience))) << train.err();
    std::cout << "killed a " << kind << " of " << run << ": recovered in "
              << absl::ToInt64Milliseconds(absl::Now() - begin) << " ms" << std::endl;
  }
  // Condition: five more steps were made after `train` reported a loss.
  std::function<bool()> FiveStepsMore(const Process& train, const std::string& run) const {
    return [this, &train, run, steps = size_t{0}]() mutable {
      if (!absl::StrContains(train.err(), "was lost")) return false;
      if (steps == 0) steps = StepLines(run, "") + 5;
      return StepLines(run, "") >= steps;
    };
  }
  void ExpectGoodEnd(Process& train) {
    ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
    ASSERT_EQ(train.exit_code(), 0) << train.err();
    ExpectNobodyLeft();
  }
  // Loses a server: the job rolls back to its checkpoint, and ends with the bits of an undisturbed
  // run. Returns its stderr.
  std::string ExpectSameBitsAfterRollback(const Texts& settings) {
    const CheckpointState expected = Undisturbed(settings);
    if (HasFailure()) return "";
    Process& train = StartTraining("rollback", kLong + settings);
    RollBack(train);
    if (!HasFatalFailure()) ExpectSameState(expected, StateOf("rollback"));
    return train.err();
  }
  void RollBack(Process& train) {
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "rollback", 50));
    ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "rollback"));
    ASSERT_NO_FATAL_FAILURE(KillOne(train, "server", "rollback",
                                    [&] { return StepLines("rollback", "\"timeline\":2") > 0; }));
    ASSERT_NO_FATAL_FAILURE(ExpectGoodEnd(train));
    EXPECT_THAT(train.err(), HasSubstr("the job continues from step"));
  }
};

// A server that replaces a lost one is asked to leave while the job waits for another.
TEST_F(RecoveryTest, AServerThatLeavesAJobThatWaitsForItIsReplaced) {
  const CheckpointState expected = Undisturbed();
  ASSERT_FALSE(HasFailure());
  Process& train =
      StartTraining("run", kLong + Texts{"fault.failure_timeout_ms=1000", "fault.heartbeat_ms=50"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 40));
  const std::vector<pid_t> servers = Pids("server");
  ASSERT_EQ(servers.size(), 2u);
  const auto says = [&](const std::string& text) {
    return train.WaitUntil([&] { return absl::StrContains(train.err(), text); }, After(kPatience));
  };
  kill(servers[0], SIGSTOP);
  ASSERT_TRUE(says("no heartbeat for")) << train.err();
  kill(servers[1], SIGKILL);
  const auto new_server = [&]() -> pid_t {
    for (const pid_t pid : Pids("server")) {
      if (pid == servers[0] || pid == servers[1]) continue;
      const std::string status = Run({"status", Path("run")}).out();
      if (absl::StrContains(status, absl::StrCat("(pid ", pid, ","))) return pid;
    }
    return 0;
  };
  ASSERT_TRUE(train.WaitUntil([&] { return new_server() != 0; }, After(kPatience)));
  EXPECT_THAT(Run({"status", Path("run")}).out(), HasSubstr("waiting for 1 server to join"));
  kill(new_server(), SIGTERM);
  ASSERT_TRUE(says("has left; the job waits for a replacement")) << train.err();
  kill(servers[0], SIGKILL);
  ASSERT_NO_FATAL_FAILURE(ExpectGoodEnd(train));
  EXPECT_THAT(train.err(), HasSubstr("exited with code 1: starting a replacement"));
  ExpectSameState(expected, StateOf("run"));
}

TEST_F(RecoveryTest, AfterTheLossOfAWorkerTheBitsAreThoseOfAnUndisturbedRun) {
  const CheckpointState expected = Undisturbed();
  ASSERT_FALSE(HasFailure());
  for (const std::string on_loss : {"REASSIGN", "WAIT"}) {
    SCOPED_TRACE(on_loss);
    Process& train = StartTraining(on_loss, kLong + Texts{"fault.on_worker_loss=" + on_loss});
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, on_loss, 40));
    ASSERT_NO_FATAL_FAILURE(KillOne(train, "worker", on_loss, FiveStepsMore(train, on_loss)));
    ASSERT_NO_FATAL_FAILURE(ExpectGoodEnd(train));
    EXPECT_THAT(train.err(), AllOf(HasSubstr("was lost: its connection was closed"),
                                   HasSubstr("starting a replacement"),
                                   HasSubstr(" (second life) has joined: ")));
    ExpectSameState(expected, StateOf(on_loss));
    EXPECT_EQ(StepLines(on_loss, "\"timeline\":1"), 300u) << "it never went back";
  }
}

// The text may be on an unmounted drive, or a growing file: the run folder has the tokens.
TEST_F(RecoveryTest, AWorkerIsReplacedWhoseTextIsGoneOrHasChanged) {
  const std::string text = ReadText(Path("text.txt"));
  for (const std::string change : {"gone", "changed"}) {
    SCOPED_TRACE(change);
    Write(change + ".txt", text);
    // With WAIT, no step is made before another worker has replaced the lost one.
    Process& train = StartTraining(
        change, kLong + Texts{"data.path=" + change + ".txt", "fault.on_worker_loss=WAIT"});
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, change, 20));
    if (change == "gone") {
      ASSERT_EQ(unlink(Path("gone.txt").c_str()), 0);
    } else {
      Write("changed.txt", text + "and one more line\n");
    }
    ASSERT_NO_FATAL_FAILURE(KillOne(train, "worker", change, FiveStepsMore(train, change)));
    ASSERT_NO_FATAL_FAILURE(ExpectGoodEnd(train));
    EXPECT_EQ(Run({"eval", "--from", Path(change)}).exit_code(), 0) << "the tokens are the run's";
  }
}

TEST_F(RecoveryTest, RollsBackAfterServerLossAndEndsWithSameBits) {
  ExpectSameBitsAfterRollback({});
}

TEST_F(RecoveryTest, AJobThatGoesBackHasTheShadowOfAnUndisturbedOne) {
  ExpectSameBitsAfterRollback({"comm.pull_format=CHANGES"});
}

TEST_F(RecoveryTest, AJobThatGoesBackHasWhatItsEncodingsHadLeftOut) {
  const std::string said = ExpectSameBitsAfterRollback({"comm.push_codec.top_k.density=0.1",
                                                        "comm.push_codec.min_elements=0",
                                                        "comm.push_codec.warmup_steps=0"});
  EXPECT_THAT(said, Not(HasSubstr("rolled back without")));
}

}  // namespace
}  // namespace tug
