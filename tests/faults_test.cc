// SPDX-License-Identifier: Apache-2.0
// Jobs that lose an essential process (a server with fault.max_rollbacks 0, or a coordinator that
// is not recovered): the job ends soon, names the process and how to resume, leaves no process, and
// resumes with the same bits. For faults that a job survives see recovery_test.cc and
// coordinator_recovery_test.cc. Real processes, endless jobs.

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

class FaultsTest : public DaemonTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static Texts WithoutRollback() { return Endless() + Texts{"fault.max_rollbacks=0"}; }
};

std::string KindOf(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

using KilledInALocalJob = FaultsTest;
TEST_P(KilledInALocalJob, EndsTheJobAndNamesProcessAndCheckpoint) {
  Process& train = StartTraining("run", WithoutRollback());
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  const std::vector<pid_t> pids = Pids(GetParam());
  ASSERT_EQ(pids.size(), 2u);
  kill(pids.back(), SIGKILL);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << "the job goes on";
  ExpectErrorLine(train, {GetParam(), absl::StrCat("pid ", pids.back()),
                          absl::StrCat("--resume ", Path("run"))});
  ExpectNobodyLeft();
  ExpectResumes("run");
}
INSTANTIATE_TEST_SUITE_P(Faults, KilledInALocalJob, ::testing::Values("server"), KindOf);

using KilledDaemon = FaultsTest;
TEST_P(KilledDaemon, EndsTheJobAndNamesProcessAndCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(StartJob(WithoutRollback() + Texts{"fault.coordinator_timeout_ms=5000"}));
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(coordinator(), "run"));
  const std::vector<pid_t> pids = Pids(GetParam());
  ASSERT_FALSE(pids.empty());
  const pid_t victim = pids.back();
  const absl::Time deadline = After(kPatience);
  kill(victim, SIGKILL);
  for (Process* process : nodes_) {
    ASSERT_TRUE(process->WaitForEnd(deadline)) << process->command() << " goes on";
    if (process->pid() == victim) continue;
    const bool coordinator_died = coordinator().pid() == victim;
    ExpectErrorLine(
        *process,
        {GetParam(), absl::StrCat(coordinator_died ? "--recover " : "--resume ", Path("run"))});
  }
  ASSERT_TRUE(coordinator().WaitForEnd(deadline));
  if (coordinator().pid() != victim) {
    ExpectErrorLine(coordinator(), {GetParam(), absl::StrCat("pid ", victim),
                                    absl::StrCat("--resume ", Path("run"))});
  }
  ExpectNobodyLeft();
}
INSTANTIATE_TEST_SUITE_P(Faults, KilledDaemon, ::testing::Values("server", "coordinator"), KindOf);

TEST_F(FaultsTest, AKilledWorkerDaemonLeavesItsWorkToTheOther) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  kill(Pids("worker").back(), SIGKILL);
  const auto lost = [&] { return coordinator().err().find("was lost") != std::string::npos; };
  ASSERT_TRUE(coordinator().WaitUntil(lost, After(kPatience))) << coordinator().err();
  ASSERT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience))) << coordinator().err();
  ExpectOrderlyEnd(coordinator(), "run");
}

// `tug train` can no longer act: the kernel kills its children.
TEST_F(FaultsTest, ALocalJobLeavesNobodyWhenTrainItselfIsKilled) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  ASSERT_EQ(Pids("worker").size(), 2u);
  train.Signal(SIGKILL);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectNobodyLeft();
}

TEST_F(FaultsTest, AKillWhileNodesJoinIsMadeGood) {
  Process& train = StartTraining("run", Endless());
  ASSERT_TRUE(train.WaitUntil([&] { return Pids("worker").size() == 2; }, After(kPatience)));
  const pid_t victim = Pids("worker").front();
  kill(victim, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  EXPECT_NE(train.err().find(absl::StrCat("(pid ", victim, ") was killed by signal 9")),
            std::string::npos)
      << train.err();
  EXPECT_THAT(ReadText(Path("run/logs/launcher.log")),
              ::testing::ContainsRegex(absl::StrCat("warning launcher: worker-[01] \\(pid ", victim,
                                                    "\\) was killed by signal 9")));
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectOrderlyEnd(train, "run");
}

}  // namespace
}  // namespace tug
