// SPDX-License-Identifier: Apache-2.0
// Workers and servers started by another launcher, which passes rank and address in environment
// variables instead of flags.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/free_port.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr char kShell[] = "/bin/sh";
constexpr char kEnv[] = "/usr/bin/env";
// $1: tug, $2: port, $3: claimed number of workers. Like other launchers, runs the same command for
// every rank; the servers are a separate group.
constexpr char kLauncher[] = R"sh(
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$2 WORLD_SIZE=$3 LOCAL_WORLD_SIZE=2
  "$1" server & "$1" server &
  for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank "$1" worker & started="$started $!"; done
  for one in $started; do wait $one || code=$?; done
  wait
  exit ${code:-0}
)sh";

class RankEnvironmentTest : public TugTest {
 protected:
  static std::string Tug() { return fs::absolute("cli/tug").string(); }
  Process& StartWith(const Texts& variables, const Texts& arguments) {
    return StartProgram(kEnv, variables + Texts{Tug()} + arguments);
  }
  // Starts a coordinator whose port comes from the environment.
  Process& StartCoordinator() {
    for (int attempt = 0;; ++attempt) {
      port_ = absl::StrCat(FreePort());
      Process& coordinator =
          StartWith({"MASTER_ADDR=localhost", absl::StrCat("MASTER_PORT=", port_)},
                    {"coordinator", job(), "--run-dir", Path("run")});
      const auto listens = [this] {
        return ReadCoordinatorAddress(Path("run")).value_or(CoordinatorAddress()).address ==
               "127.0.0.1:" + port_;
      };
      if (coordinator.WaitUntil(listens, After(kPatience)) || attempt == 4) return coordinator;
    }
  }
  Process& StartLauncher(int workers) {
    return StartProgram(kShell, {"-c", kLauncher, "launcher", Tug(), port_, absl::StrCat(workers)});
  }

  std::string port_;
};

TEST_F(RankEnvironmentTest, StartsAJobWithTheBitsOfALocalOne) {
  Process& coordinator = StartCoordinator();
  Process& launcher = StartLauncher(2);
  ASSERT_TRUE(launcher.WaitForEnd(After(kPatience))) << launcher.out() << launcher.err();
  EXPECT_EQ(launcher.exit_code(), 0) << launcher.out() << launcher.err();
  ASSERT_TRUE(coordinator.WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator.exit_code(), 0) << coordinator.out() << coordinator.err();
  Train("local");
  ExpectSameState(Path("local"), Path("run"));
}

TEST_F(RankEnvironmentTest, RefusesAWorldOfAnotherSize) {
  Process& coordinator = StartCoordinator();
  for (const Texts& share : {Texts{}, Texts{"--gpu-share", "0/2"}, Texts{"--core-share", "0/2"}}) {
    Process& worker = StartWith(
        {"MASTER_ADDR=127.0.0.1", absl::StrCat("MASTER_PORT=", port_), "RANK=0", "WORLD_SIZE=3"},
        Texts{"worker"} + share);
    ASSERT_TRUE(worker.WaitForEnd(After(kPatience)));
    ExpectErrorLine(worker, {"WORLD_SIZE=3", "the job has 2 workers", "cluster.workers=3"});
  }
  Process& stop = Run({"stop", "--coordinator", absl::StrCat("127.0.0.1:", port_)});
  EXPECT_EQ(stop.exit_code(), 0) << stop.err();
  EXPECT_TRUE(coordinator.WaitForEnd(After(kPatience))) << coordinator.err();
}

// The rank variables of tug train itself do not apply to the workers it starts.
TEST_F(RankEnvironmentTest, RankOfTugTrainDoesNotApplyToItsWorkers) {
  Process& train = StartWith({"RANK=0", "WORLD_SIZE=3", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1"},
                             {"train", job(), "--run-dir", Path("run"), "--set", "train.steps=10"});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 0) << train.err();
}

TEST_F(RankEnvironmentTest, SaysInOneLineWhatIsWrong) {
  struct {
    Texts variables;
    Texts arguments;
    Texts parts;
  } const cases[] = {
      {{"-u", "MASTER_ADDR", "-u", "MASTER_PORT"},
       {"worker"},
       {"no coordinator given", "MASTER_ADDR"}},
      {{"-u", "MASTER_ADDR", "-u", "MASTER_PORT"}, {"server"}, {"no coordinator given"}},
      {{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=http"}, {"worker"}, {"MASTER_PORT='http'"}},
      {{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=0"}, {"coordinator", job()}, {"MASTER_PORT='0'"}},
      {{"RANK=2", "WORLD_SIZE=2"},
       {"worker", "--coordinator", "127.0.0.1:1"},
       {"RANK=2", "WORLD_SIZE=2"}},
      {{"MASTER_ADDR=no-such-host.invalid", "MASTER_PORT=1"},
       {"server"},
       {"no-such-host.invalid", "use the address of the host"}},
      {{"MASTER_PORT=1"},
       {"server", "--coordinator", "127.0.0.1:1", "--interface", "no-such-0"},
       {"interface no-such-0 does not exist"}},
  };
  for (const auto& [variables, arguments, parts] : cases) {
    Process& process = StartWith(variables, arguments);
    ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << process.command();
    ExpectErrorLine(process, parts);
  }
}

}  // namespace
}  // namespace tug
