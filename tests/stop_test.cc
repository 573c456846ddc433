// SPDX-License-Identifier: Apache-2.0
// Jobs that are stopped by a signal or by `tug stop`: the job finishes the step, writes a
// checkpoint, and resumes from it with the same bits. Real processes, endless jobs.

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using StopTest = DaemonTest;

class Interrupted : public DaemonTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(Interrupted, ALocalJobEndsWithACheckpointToContinueFrom) {
  Process& train = StartTraining("run", Endless() + GetParam().settings);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
  ExpectResumes("run", GetParam().settings);
}

INSTANTIATE_TEST_SUITE_P(
    Stop, Interrupted,
    ::testing::Values(Kind{"AsItIs", {}},
                      Kind{"WhileEvaluating", {"train.eval_interval=1", "train.eval_samples=0"}},
                      Kind{"WhileWritingCheckpoints", {"checkpoint.interval=1"}},
                      Kind{"WithSlowHeartbeats", {"fault.heartbeat_ms=300"}},
                      Kind{"WithOneWorker", {"cluster.workers=1"}},
                      Kind{"WithManyLanes", {"cluster.lanes_per_server=6"}},
                      Kind{"WithoutClipping",
                           {"cluster.workers=2", "optimizer.clip=OFF", "comm.scheduler=FIFO"}}),
    NameOfKind);

TEST_F(StopTest, ATerminationEndsALocalJobInOrderToo) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  train.Signal(SIGTERM);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

TEST_F(StopTest, StopEndsALocalJobInOrder) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  const Process& stop = Run({"stop", Path("run")});
  EXPECT_EQ(stop.exit_code(), 0) << stop.err();
  EXPECT_THAT(stop.out(), HasSubstr("checkpoint"));
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

TEST_F(StopTest, StopEndsDaemonsInOrder) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  EXPECT_EQ(Run({"stop", "--coordinator", address()}).exit_code(), 0);
  const absl::Time deadline = After(kPatience);
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(deadline)) << node->command();
    EXPECT_EQ(node->exit_code(), 0) << node->command() << node->err();
  }
  ASSERT_TRUE(coordinator().WaitForEnd(deadline));
  ExpectOrderlyEnd(coordinator(), "run");
}

TEST_F(StopTest, AnInterruptBeforeAllNodesAreThereEndsTheJob) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator(Endless()));
  StartServers(1);
  ASSERT_TRUE(coordinator().WaitUntil(
      [&] {
        return Run({"status", Path("run")}).out().find("server-") != std::string::npos;
      },
      After(kPatience)));
  coordinator().Signal(SIGINT);
  const absl::Time deadline = After(kPatience);
  ASSERT_TRUE(coordinator().WaitForEnd(deadline));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  ASSERT_TRUE(nodes_[0]->WaitForEnd(deadline));
  EXPECT_EQ(nodes_[0]->exit_code(), 0) << nodes_[0]->err();
  ExpectNobodyLeft();
}

// The user may interrupt at any instant between the start and the first steps.
TEST_F(StopTest, AnInterruptAtAnyInstantOfTheStartEndsTheJob) {
  for (int delay_ms = 0; delay_ms <= 400; delay_ms += 100) {
    SCOPED_TRACE(absl::StrCat(delay_ms, " ms"));
    Process& train = StartTraining(absl::StrCat("run-", delay_ms), Endless());
    const absl::Time when = After(absl::Milliseconds(delay_ms));
    // After the program's own start, so that it handles the interrupt itself.
    ASSERT_TRUE(train.WaitUntil([&] { return !Pids("coordinator").empty(); }, After(kPatience)));
    train.WaitForEnd(when);
    train.Signal(SIGINT);
    ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
    EXPECT_LT(train.exit_code(), 128) << "killed by a signal";
    ExpectNobodyLeft();
  }
}

TEST_F(StopTest, ASecondInterruptEndsALocalJobAtOnce) {
  Process& train = StartTraining("run", Endless() + Texts{"fault.heartbeat_ms=1000"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  train.Signal(SIGINT);
  // The reply shows that the first one was received; the job still needs a step and a heartbeat.
  ASSERT_TRUE(train.WaitUntil(
      [&] { return train.err().find("stopping after") != std::string::npos; }, After(kPatience)));
  for (const pid_t pid : Pids("coordinator")) kill(pid, SIGSTOP);  // it handles no signal
  ASSERT_TRUE(EndsWhenAskedAgain(train, SIGINT)) << train.err();
  ExpectErrorLine(train, {"interrupted twice"});
  ExpectNobodyLeft();
}

TEST_F(StopTest, AJobThatIsEndedAtOnceNamesTheCommandThatResumesIt) {
  const std::string file = Path("my job.textproto");
  Write("my job.textproto", ReadText(job()));
  const Texts settings = Set(Endless() + Texts{"checkpoint.interval=5"});
  Process& train = Start(Texts{"train", file, "--run-dir", Path("run")} + settings);
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  for (const pid_t pid : Pids("coordinator")) kill(pid, SIGSTOP);  // it handles no signal
  train.Signal(SIGINT);
  ASSERT_TRUE(EndsWhenAskedAgain(train, SIGINT)) << train.err();
  ExpectErrorLine(
      train, {absl::StrCat("resume with: tug train '", file, "' ", absl::StrJoin(settings, " "),
                           " --resume ", Path("run"), " (step ")});
  ExpectNobodyLeft();
}

}  // namespace
}  // namespace tug
