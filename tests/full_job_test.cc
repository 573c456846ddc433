// SPDX-License-Identifier: Apache-2.0
// A node that finds the job full waits until the node it replaces is declared lost, until the job
// ends, or until a timeout. Real processes.

#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

const Texts kJob = {"train.steps=600", "checkpoint.interval=50", "train.eval_interval=200"};
// Slows the job down enough for a worker to join; changes no bit.
const Texts kSlow = {"straggler.slowdown=6"};
constexpr char kWaits[] = "the job is full (2 workers); waiting up to ";
constexpr char kJoins[] = "joined the job: a slot became free";

class FullJobTest : public DaemonTest {
 protected:
  // Starts one worker more than the job has; returns when it reports that it waits.
  Process& StartWaiting() {
    Process& worker = Start({"worker", "--coordinator", address()});
    EXPECT_TRUE(
        worker.WaitUntil([&] { return absl::StrContains(worker.err(), kWaits); }, After(kPatience)))
        << worker.err();
    return worker;
  }
  void ExpectSameBits() const {
    const absl::StatusOr<CheckpointState> expected = ReadState(Path("undisturbed"));
    const absl::StatusOr<CheckpointState> state = ReadState(Path("run"));
    ASSERT_TRUE(expected.ok() && state.ok()) << expected.status() << state.status();
    ExpectSameState(*expected, *state);
  }
  // Logs of a local job's workers.
  std::string WorkersSaid() const {
    return ReadText(Path("run/logs/worker-0.log")) + ReadText(Path("run/logs/worker-1.log"));
  }
  static size_t Times(const std::string& text, const std::string& what) {
    return std::vector<std::string>(absl::StrSplit(text, what)).size() - 1;
  }
};

TEST_F(FullJobTest, AWorkerWaitsUntilASilentOneIsLostAndTakesItsPlace) {
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", kJob));
  ASSERT_NO_FATAL_FAILURE(StartJob(kJob + kSlow + Texts{"fault.failure_timeout_ms=2000"}));
  Process& newcomer = StartWaiting();
  Process& silent = *nodes_.back();
  silent.Signal(SIGSTOP);  // its connections stay open
  ASSERT_TRUE(newcomer.WaitUntil([&] { return absl::StrContains(newcomer.err(), kJoins); },
                                 After(kPatience)))
      << newcomer.err() << coordinator().err();
  silent.Signal(SIGKILL);
  nodes_.back() = &newcomer;
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience))) << coordinator().err();
  ASSERT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience))) << node->command();
    EXPECT_EQ(node->exit_code(), 0) << node->err();
  }
  EXPECT_THAT(coordinator().err(), HasSubstr("was lost: no heartbeat for "));
  EXPECT_EQ(Times(newcomer.err(), kWaits), 1u) << newcomer.err();
  ExpectSameBits();
}

// A surplus worker waits for fault.failure_timeout_ms plus 10 s.
TEST_F(FullJobTest, AWorkerTooManyIsRefusedAfterAWhileOrEndsAtASignalOrWithTheJob) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"fault.failure_timeout_ms=2000"}));
  Process& refused = StartWaiting();
  Process& signalled = StartWaiting();
  signalled.Signal(SIGTERM);
  ASSERT_TRUE(signalled.WaitForEnd(After(kPatience)));
  EXPECT_EQ(signalled.exit_code(), 128 + SIGTERM);
  EXPECT_EQ(Times(Run({"status", Path("run")}).out(), "\n  worker-"), 2u) << "members";

  ASSERT_TRUE(refused.WaitForEnd(After(kPatience)));
  ExpectErrorLine(refused, {"the job is full (2 workers). To add a worker instead, raise "
                            "cluster.workers; otherwise stop another one first"});
  EXPECT_GE(refused.time(), absl::Seconds(11));
  EXPECT_FALSE(coordinator().ended());

  Process& last = StartWaiting();
  ASSERT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  for (Process* process : {&coordinator(), &last}) {
    ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
    EXPECT_EQ(process->exit_code(), 0) << process->err();
  }
  EXPECT_THAT(last.err(), HasSubstr("the job has ended"));
  for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
  ExpectOrderlyEnd(coordinator(), "run");
}

TEST_F(FullJobTest, AServerTooManyWaitsUntilTheJobHasBegunWhichThenTakesIt) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator(Endless()));
  StartServers(3);
  Process* late = nullptr;
  const auto one_waits = [&] {
    for (Process* server : nodes_) {
      if (absl::StrContains(server->err(), "the job is full (2 servers); waiting")) late = server;
    }
    return late != nullptr;
  };
  ASSERT_TRUE(coordinator().WaitUntil(one_waits, After(kPatience)));
  StartWorkers(2);
  ASSERT_TRUE(
      late->WaitUntil([&] { return absl::StrContains(late->err(), kJoins); }, After(kPatience)))
      << late->err();
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", 20));
  ASSERT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  nodes_.push_back(&coordinator());
  for (Process* process : nodes_) {
    ASSERT_TRUE(process->WaitForEnd(After(kPatience))) << process->command();
    EXPECT_EQ(process->exit_code(), 0) << process->err();
  }
}

// Between the recovery and its first message to the new coordinator, the death of a worker is not
// detected: it is declared lost only after the failure timeout, while a replacement starts at once.
TEST_F(FullJobTest, AWorkerThatDiesJustAfterARecoveryIsReplacedByOneThatWaits) {
  ASSERT_NO_FATAL_FAILURE(Train("undisturbed", kJob));
  Process& train = StartTraining("run", kJob + kSlow + Texts{"fault.failure_timeout_ms=10000"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 40));
  const pid_t worker = Pids("worker").back();
  kill(worker, SIGSTOP);  // so that it sends nothing
  kill(Pids("coordinator").at(0), SIGKILL);
  const auto says = [&](const std::string& text) {
    return train.WaitUntil([&] { return absl::StrContains(train.err() + WorkersSaid(), text); },
                           After(kPatience));
  };
  ASSERT_TRUE(says("another one recovered the job at step")) << train.err();
  kill(worker, SIGKILL);
  EXPECT_TRUE(says(kWaits)) << train.err() << WorkersSaid();
  EXPECT_TRUE(says(kJoins)) << train.err() << WorkersSaid();
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  ExpectNobodyLeft();
  EXPECT_THAT(train.err(), HasSubstr("was lost: no heartbeat for "));
  EXPECT_EQ(Times(train.err(), "starting a replacement"), 1u) << train.err();
  EXPECT_EQ(Times(WorkersSaid(), kWaits), 1u) << WorkersSaid();
  ExpectSameBits();
}

}  // namespace
}  // namespace tug
