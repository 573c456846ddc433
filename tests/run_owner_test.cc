// SPDX-License-Identifier: Apache-2.0
// A run folder has one owner: a refused process changes nothing there, and a command that names the
// folder reaches no other job. Real processes.

#include <signal.h>

#include <string>

#include "coordinator/observe/run_folder.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

class RunOwnerTest : public DaemonTest {
 protected:
  std::string Config() const { return ReadText(Path("run") + "/" + kConfigFile); }
  void Stop(Process& train) {
    train.Signal(SIGINT);
    ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
    ExpectOrderlyEnd(train, "run");
  }
};

TEST_F(RunOwnerTest, RefusesResumeOfRunningJobAndChangesNothing) {
  Process& train = StartTraining("run", Endless() + Texts{"checkpoint.interval=1"});
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  const std::string config = Config();
  for (int i = 0; i < 3; ++i) {
    ExpectErrorLine(
        Run(Texts{"train", job(), "--resume", Path("run")} + Set({"optimizer.learning_rate=9e-3"})),
        {"another coordinator is running in " + Path("run"), "tug status"});
    EXPECT_EQ(Config(), config);
  }
  ASSERT_NO_FATAL_FAILURE(Stop(train));
}

TEST_F(RunOwnerTest, RefusesSecondJobInFolderAndChangesNothing) {
  Process& first = StartTraining("run", Endless());
  Process& second = StartTraining("run", Endless() + Texts{"optimizer.learning_rate=9e-3"});
  const auto one_ended = [&] {
    return first.WaitForEnd(absl::Now()) || second.WaitForEnd(absl::Now());
  };
  ASSERT_TRUE(first.WaitUntil(one_ended, After(kPatience)));
  Process& refused = first.ended() ? first : second;
  Process& owner = first.ended() ? second : first;
  ExpectErrorLine(refused, {"run"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(owner, "run", 5));
  EXPECT_EQ(Config().find("learning_rate: 0.009") == std::string::npos, &owner == &first);
  ASSERT_NO_FATAL_FAILURE(Stop(owner));
}

TEST_F(RunOwnerTest, NoCommandForADeadJobReachesTheOneAtItsAddress) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({}));
  coordinator().Signal(SIGKILL);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  Process& other = Start({"coordinator", job(), "--listen", address(), "--run-dir", Path("other")});
  const auto listens = [&] { return ReadCoordinatorAddress(Path("other")).ok(); };
  ASSERT_TRUE(other.WaitUntil(listens, After(kPatience))) << other.err();
  for (const Texts& command : {Texts{"status"}, Texts{"stop"}, Texts{"drain", "worker-0"}}) {
    ExpectErrorLine(Run(command + Texts{Path("run")}),
                    {"no coordinator runs in " + Path("run"), "runs the job of " + Path("other"),
                     "tug coordinator --recover"});
  }
  EXPECT_EQ(Run({"stop", Path("other")}).exit_code(), 0);
  ASSERT_TRUE(other.WaitForEnd(After(kPatience))) << other.err();
  EXPECT_EQ(other.exit_code(), 0) << other.err();
}

}  // namespace
}  // namespace tug
