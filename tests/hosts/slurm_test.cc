// SPDX-License-Identifier: Apache-2.0
// `tug launch --slurm`: jobs in a real Slurm, which deploy/slurm/one_node starts for each test with
// several nodes on this machine. Skipped without Slurm or root.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kEnv[] = "/usr/bin/env";
// Time for an ended job's script and Slurm's own steps to finish.
constexpr absl::Duration kGoneTime = absl::Seconds(30);
const Texts kDaemons = {"coordinator", "server", "worker", "attend", "launch"};
const Texts kFourWorkers = {"cluster.workers=4", "cluster.virtual_workers=4"};

class SlurmTest : public TugTest {
 protected:
  void SetUp() override {
    for (const char* tool : {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged",
                             "/usr/bin/sbatch", "/usr/bin/unshare"}) {
      if (!fs::exists(tool))
        GTEST_SKIP() << "skipped: no Slurm (" << tool << "); deploy/setup --tests installs it";
    }
    if (geteuid() != 0) GTEST_SKIP() << "skipped: not root, and a Slurm of our own needs it";
    // A short path: names of sockets below it are limited in length.
    std::string pattern = "/tmp/tug-slurm-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    cluster_ = pattern;
    slurm_ = &StartProgram("deploy/slurm/one_node", {"hold", cluster_, "2", "4"});
    const auto ready = [this] { return absl::StrContains(slurm_->out(), "export SLURM_CONF="); };
    ASSERT_TRUE(slurm_->WaitUntil(ready, After(2 * kPatience))) << slurm_->out() << slurm_->err();
  }

  void TearDown() override {
    if (slurm_ != nullptr) {
      if (HasFailure()) std::cout << ReadText(Path("job.out")) << std::endl;
      slurm_->Signal(SIGKILL);  // services and jobs die with it
      slurm_->WaitForEnd(After(kPatience));
    }
    std::error_code ignored;
    if (!cluster_.empty()) fs::remove_all(cluster_, ignored);
    TugTest::TearDown();
  }

  // Runs a Slurm command and returns its output.
  std::string Ask(const Texts& command) {
    Process& asked =
        StartProgram(kEnv, Texts{absl::StrCat("SLURM_CONF=", cluster_, "/slurm.conf")} + command);
    EXPECT_TRUE(asked.WaitForEnd(After(kPatience))) << asked.command();
    EXPECT_EQ(asked.exit_code(), 0) << asked.command() << asked.err();
    return std::string(absl::StripSuffix(asked.out(), "\n"));
  }
  // Submits deploy/slurm/train.sbatch with 2 servers and 4 workers on two nodes; returns the job's
  // id.
  std::string Submit(const Texts& settings) {
    return Ask(Texts{absl::StrCat("TUG=", fs::absolute("cli/tug").string()),
                     absl::StrCat("JOB=", job()), absl::StrCat("RUN=", Path("run")), "sbatch",
                     "--parsable", "--nodes=2", "--ntasks=6", "--cpus-per-task=1",
                     "--ntasks-per-node=3", absl::StrCat("--output=", Path("job.out")),
                     fs::absolute("deploy/slurm/train.sbatch").string()} +
               Set(kFourWorkers + settings));
  }
  std::string Said() const { return ReadText(Path("job.out")); }
  uint64_t Steps() const {
    const auto losses = ReadLosses(Path("run"));
    return losses.ok() && !losses->training.empty() ? losses->training.rbegin()->first : 0;
  }

  // Slurm nodes of the daemons of a kind.
  Texts NodesOf(const std::string& kind) const {
    constexpr char kKey[] = "SLURMD_NODENAME=";
    Texts nodes;
    for (const pid_t pid : Pids(kind)) {
      const std::string all = ReadText(absl::StrCat("/proc/", pid, "/environ"));
      for (absl::string_view entry : absl::StrSplit(all, '\0')) {
        if (absl::ConsumePrefix(&entry, kKey)) nodes.emplace_back(entry);
      }
    }
    return nodes;
  }
  bool DaemonsAreLeft() const {
    for (const std::string& kind : kDaemons) {
      if (!Pids(kind).empty()) return true;
    }
    return false;
  }
  void ExpectDaemonsGone() {
    slurm_->WaitUntil([this] { return !DaemonsAreLeft(); }, After(kGoneTime));
    EXPECT_FALSE(DaemonsAreLeft());
  }
  bool HasLeftTheQueue(const std::string& id) {
    return !absl::StrContains(Ask({"squeue", "--noheader", "--format=%i"}), id);
  }

  std::string cluster_;
  Process* slurm_ = nullptr;
};

TEST_F(SlurmTest, TrainsToItsEndWithTheBitsOfALocalJob) {
  const std::string id = Submit({});
  ASSERT_TRUE(slurm_->WaitUntil([&] { return HasLeftTheQueue(id); }, After(2 * kPatience)));
  EXPECT_THAT(Ask({"scontrol", "show", "job", id}), HasSubstr("JobState=COMPLETED")) << Said();
  EXPECT_THAT(Said(), AllOf(HasSubstr("coordinator     node1 | "), HasSubstr("done: 50 of 50")));
  EXPECT_TRUE(fs::exists(Path("run/logs/worker-3.log")));
  EXPECT_EQ(NewestCheckpoint("run"), 50u);
  EXPECT_FALSE(DaemonsAreLeft());
  Train("local", kFourWorkers);
  ExpectSameState(Path("local"), Path("run"));
}

// With the container's userland that of this host.
TEST_F(SlurmTest, TrainsInContainersWithTheBitsOfALocalJob) {
  const std::string path =
      absl::StrCat("PATH=", fs::absolute("cli").string(), ":", std::getenv("PATH"));
  const std::string id =
      Ask(Texts{path, absl::StrCat("JOB=", job()), absl::StrCat("RUN=", Path("run")), "SERVERS=2",
                "sbatch", "--parsable", "--nodes=2", "--ntasks=6",
                absl::StrCat("--output=", Path("job.out")),
                fs::absolute("deploy/slurm/container.sbatch").string()} +
          Set(kFourWorkers));
  ASSERT_TRUE(slurm_->WaitUntil([&] { return HasLeftTheQueue(id); }, After(2 * kPatience)));
  EXPECT_THAT(Ask({"scontrol", "show", "job", id}), HasSubstr("JobState=COMPLETED")) << Said();
  EXPECT_THAT(Said(), HasSubstr("done: 50 of 50"));
  Train("local", kFourWorkers);
  ExpectSameState(Path("local"), Path("run"));
}

TEST_F(SlurmTest, EndsInOrderWhenCancelled) {
  const std::string id = Submit(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", 5));
  // Three tasks per node, servers first.
  EXPECT_THAT(NodesOf("coordinator"), ElementsAre("node1"));
  EXPECT_THAT(NodesOf("server"), ElementsAre("node1", "node1"));
  EXPECT_THAT(NodesOf("worker"), UnorderedElementsAre("node1", "node2", "node2", "node2"));
  Ask({"scancel", id});
  ExpectDaemonsGone();
  EXPECT_THAT(Said(), HasSubstr("stopped:"));
  EXPECT_EQ(Steps(), NewestCheckpoint("run")) << "the job was not ended in order";
}

// Like the signal shortly before the time limit.
TEST_F(SlurmTest, GoesOnFromItsCheckpointAfterARequeue) {
  const std::string id = Submit(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", 5));
  Ask({"scancel", "--signal=USR1", "--batch", id});
  const auto again = [this] { return absl::StrContains(Said(), "continuing from step"); };
  ASSERT_TRUE(slurm_->WaitUntil(again, After(2 * kPatience)));
  const uint64_t begin = NewestCheckpoint("run");
  EXPECT_THAT(Said(), AllOf(HasSubstr("stopped:"),
                            HasSubstr(absl::StrCat("continuing from step ", begin, " of"))));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", begin + 5));
  Ask({"scancel", id});
  ExpectDaemonsGone();
  EXPECT_EQ(Steps(), NewestCheckpoint("run"));
}

TEST_F(SlurmTest, ReplacesADaemonThatIsKilled) {
  const std::string id = Submit(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", 5));
  const std::vector<pid_t> workers = Pids("worker");
  ASSERT_EQ(workers.size(), 4u);
  kill(workers[0], SIGKILL);
  const auto replaced = [&] {
    return absl::StrContains(Said(), "starting a replacement") && Pids("worker").size() == 4;
  };
  ASSERT_TRUE(slurm_->WaitUntil(replaced, After(kPatience)));
  EXPECT_THAT(Said(), HasSubstr("was killed by signal 9 (Killed): starting a replacement"));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", Steps() + 5));
  Ask({"scancel", id});
  ExpectDaemonsGone();
}

TEST_F(SlurmTest, LeavesNobodyWhenTheLauncherIsKilled) {
  const auto id = Submit(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(*slurm_, "run", 5));
  for (const pid_t pid : Pids("launch")) kill(pid, SIGKILL);
  ExpectDaemonsGone();
  EXPECT_TRUE(slurm_->WaitUntil([&] { return HasLeftTheQueue(id); }, After(kGoneTime)))
      << "the script goes on without its launcher";
  EXPECT_EQ(Steps(), NewestCheckpoint("run")) << "the job was not ended in order";
}

class OutsideOfSlurmTest : public TugTest {};

TEST_F(OutsideOfSlurmTest, SaysThatThereIsNoAllocation) {
  Process& launch = StartProgram(
      kEnv,
      {"-u", "SLURM_JOB_NODELIST", fs::absolute("cli/tug").string(), "launch", job(), "--slurm"});
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience)));
  ExpectErrorLine(launch, {"not inside a Slurm allocation", "sbatch"});
}

}  // namespace
}  // namespace tug
