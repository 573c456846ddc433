// SPDX-License-Identifier: Apache-2.0
// Environment of a launcher: inherited signal dispositions and limits, and files deleted while its
// job runs. Real processes.

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

class SurroundingsTest : public TugTest {
 protected:
  void ExpectEndsInOrder(Process& train, const std::string& run) {
    ASSERT_NO_FATAL_FAILURE(EndInOrder(train));
    ExpectOrderlyEnd(train, run);
  }
};

// Such as a service or a scheduler that does not wait for its children.
TEST_F(SurroundingsTest, AParentThatIgnoresSigchldHidesNoEndFromTheLauncher) {
  Process& train = StartIgnoring(SIGCHLD, TrainArguments("run", Endless()));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ASSERT_NO_FATAL_FAILURE(ExpectAWorkerIsReplaced(train, "run"));
  ExpectEndsInOrder(train, "run");
}

// A batch system's limit (ulimit -f): enough for the run's files, too little for shared memory.
TEST_F(SurroundingsTest, AJobRunsUnderALimitOfFileSizeThatItsFilesFit) {
  Process& train = StartLimited(TrainArguments("run", {"train.steps=20"}), RLIMIT_FSIZE, 1'000'000);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  EXPECT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_EQ(NewestCheckpoint("run"), 20u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Too little for the threads that serve calls; gRPC does not report that.
TEST_F(SurroundingsTest, ALackOfAddressSpaceEndsAJobWithTheRemedy) {
  Process& train = StartLimited(TrainArguments("run", {"train.steps=20"}), RLIMIT_AS, 275'000'000);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectErrorLine(train, {"memory", "ulimit -v"});
}
#endif

TEST_F(SurroundingsTest, AWorkerIsReplacedAfterTheLogsWereDeleted) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  std::filesystem::remove_all(Path("run/logs"));
  ASSERT_NO_FATAL_FAILURE(ExpectAWorkerIsReplaced(train, "run"));
  ExpectEndsInOrder(train, "run");
}

// As by a build or an upgrade.
TEST_F(SurroundingsTest, AWorkerIsReplacedAfterTheProgramWasDeletedOrReplaced) {
  for (const std::string run : {"deleted", "replaced"}) {
    SCOPED_TRACE(run);
    const std::string program = Path(absl::StrCat("tug-", run));
    std::filesystem::copy_file("cli/tug", program);
    Process& train = StartProgram(program, TrainArguments(run, Endless()));
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, run, 5));
    std::filesystem::remove(program);
    if (run == "replaced") std::filesystem::copy_file("/bin/false", program);
    ASSERT_NO_FATAL_FAILURE(ExpectAWorkerIsReplaced(train, run));
    ExpectEndsInOrder(train, run);
  }
}

TEST_F(SurroundingsTest, ASecondInterruptCountsAfterTheWallClockWasSetBack) {
  if (!GiveOwnWallClock()) GTEST_SKIP() << "a sanitizer wants to be loaded first";
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  const std::vector<pid_t> coordinators = Pids("coordinator");
  ASSERT_EQ(coordinators.size(), 1u);
  kill(coordinators[0], SIGSTOP);  // it handles no signal
  train.Signal(SIGINT);
  const auto passed_on = [&] { return IsPending(coordinators[0], SIGINT); };
  ASSERT_TRUE(train.WaitUntil(passed_on, After(kPatience))) << train.err();
  SetWallClockBack();
  ASSERT_TRUE(EndsWhenAskedAgain(train, SIGINT)) << train.err();
  ExpectErrorLine(train, {"interrupted twice"});
}

// The straggler's sleep and the timeout of a stopped worker must not take an hour.
TEST_F(SurroundingsTest, AJobStandsStillForNoStepOfTheWallClock) {
  if (!GiveWallClockAhead()) GTEST_SKIP() << "a sanitizer wants to be loaded first";
  Process& train = StartTraining(
      "run", Endless() + Texts{"straggler.slowdown=2", "fault.failure_timeout_ms=1000"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  const std::vector<pid_t> workers = Pids("worker");
  ASSERT_FALSE(workers.empty());
  kill(workers[0], SIGSTOP);
  const auto is_lost = [&] { return absl::StrContains(train.err(), "no heartbeat for"); };
  EXPECT_TRUE(train.WaitUntil(is_lost, After(kPatience))) << train.err();
  kill(workers[0], SIGKILL);  // a replacement is started
  const uint64_t steps = ReadLosses(Path("run")).value().training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", steps + 5));
  ExpectEndsInOrder(train, "run");
}

TEST_F(SurroundingsTest, AJobFileMayBeAPipe) {
  const FileDescriptor pipe = PipeOf(ReadText(job()));
  Process& train =
      Start(Texts{"train", absl::StrCat("/dev/fd/", pipe.get()), "--run-dir", Path("run")} +
            Set({"train.steps=10"}));
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  EXPECT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_EQ(NewestCheckpoint("run"), 10u);
  ASSERT_NO_FATAL_FAILURE(Train("by_name", {"train.steps=10"}));
  ExpectSameState(Path("by_name"), Path("run"));
}

}  // namespace
}  // namespace tug
