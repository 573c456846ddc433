// SPDX-License-Identifier: Apache-2.0
// placement.offload_dir: a server with too little memory for its lanes' state still trains to the
// same bits, and leaves no files in the folder, however it ends.

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

// 12.6 million parameters: 50 MB of weights, twice, and 101 MB of Adam's state.
const Texts kJob = {"cluster.servers=1",
                    "cluster.workers=1",
                    "cluster.virtual_workers=1",
                    "model.layers=4",
                    "model.width=512",
                    "model.heads=8",
                    "train.steps=3",
                    "optimizer.warmup_steps=0",
                    "train.global_batch=1",
                    "train.eval_interval=0",
                    "comm.segment_elements=65536",
                    "comm.partition_bytes=4194304",
                    "checkpoint.interval=0"};
// Memory limit beyond what a joined server uses: for threads, messages and copies in flight.
constexpr uint64_t kRoomBytes = uint64_t{64} << 20;

// "VmData" of /proc/PID/status in bytes, which RLIMIT_DATA limits.
uint64_t DataBytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  uint64_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmData:" && status >> kilobytes) break;
  }
  return kilobytes << 10;
}

class OffloadTest : public DaemonTest {
 protected:
  void SetUp() override { fs::create_directories(Path("files")); }

  Texts Offloaded() const { return {absl::StrCat("placement.offload_dir=", Path("files"))}; }

  // Returns when the server has joined and its threads run, before it holds any state.
  Process& StartTheServer(const Texts& settings) {
    StartCoordinator(kJob + settings);
    StartServers(1);
    Process& server = *nodes_[0];
    const auto joined = [&] {
      const Process& status = Run({"status", "--coordinator", address()});
      return status.out().find("lanes tcp") != std::string::npos;
    };
    EXPECT_TRUE(server.WaitUntil(joined, After(kPatience))) << server.err();
    return server;
  }
  void LimitData(const Process& server) {
    const rlim_t most = DataBytes(server.pid()) + kRoomBytes;
    ASSERT_GT(most, kRoomBytes);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    ASSERT_EQ(prlimit(server.pid(), RLIMIT_DATA, &limit, nullptr), 0) << std::strerror(errno);
  }
  void ExpectTheServerDies(Process& server) {
    StartWorkers(1);
    ASSERT_TRUE(server.WaitForEnd(After(kPatience))) << "it had memory enough";
    EXPECT_NE(server.exit_code(), 0);
    for (Process* process : {&coordinator(), nodes_[1]}) {
      process->Signal(SIGKILL);
      EXPECT_TRUE(process->WaitForEnd(After(kPatience)));
    }
  }
  // The job ends with the bits of a job in memory.
  void ExpectSameEnd() {
    StartWorkers(1);
    ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience))) << coordinator().err();
    ASSERT_EQ(coordinator().exit_code(), 0) << coordinator().err() << nodes_[0]->err();
    for (Process* node : nodes_) EXPECT_TRUE(node->WaitForEnd(After(kPatience)));
    EXPECT_TRUE(fs::is_empty(Path("files")));
    ASSERT_NO_FATAL_FAILURE(Train("memory", kJob));
    ExpectSameState(Path("memory"), Path("run"));
  }
};

TEST_F(OffloadTest, WithoutItAServerDiesWhereMemoryIsTooLittle) {
  Process& server = StartTheServer({});
  ASSERT_NO_FATAL_FAILURE(LimitData(server));
  ExpectTheServerDies(server);
}

TEST_F(OffloadTest, WithItTheJobEndsWithTheSameBits) {
  Process& server = StartTheServer(Offloaded());
  ASSERT_NO_FATAL_FAILURE(LimitData(server));
  ExpectSameEnd();
}

// A control group limits all memory, including pages of files.
class GroupTest : public OffloadTest {
 protected:
  void SetUp() override {
    OffloadTest::SetUp();
    const bool second = fs::exists("/sys/fs/cgroup/cgroup.controllers");
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    group_ = absl::StrCat(root, "/tug-offload-test-", getpid());
    std::error_code error;
    fs::create_directory(group_, error);
    const std::string limit =
        absl::StrCat(group_, second ? "/memory.max" : "/memory.limit_in_bytes");
    if (error || !(std::ofstream(limit) << (uint64_t{160} << 20) << std::flush)) {
      GTEST_SKIP() << "no control group that bounds memory can be made here";
    }
  }
  void TearDown() override {
    OffloadTest::TearDown();
    std::error_code ignored;
    fs::remove(group_, ignored);
  }
  void Limit(const Process& server) {
    ASSERT_TRUE(std::ofstream(group_ + "/cgroup.procs") << server.pid() << std::flush);
  }

  std::string group_;
};

TEST_F(GroupTest, WithoutItAServerIsKilledWhereMemoryIsTooLittle) {
  Process& server = StartTheServer({});
  ASSERT_NO_FATAL_FAILURE(Limit(server));
  ExpectTheServerDies(server);
}

TEST_F(GroupTest, WithItTheJobEndsWithTheSameBits) {
  Process& server = StartTheServer(Offloaded());
  ASSERT_NO_FATAL_FAILURE(Limit(server));
  ExpectSameEnd();
}

TEST_F(OffloadTest, KilledServerLeavesNoFiles) {
  Process& train = StartTraining("killed", Endless() + Offloaded());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "killed", 3));
  EXPECT_TRUE(fs::is_empty(Path("files"))) << "files have no names";
  for (const pid_t pid : Pids("train")) kill(pid, SIGKILL);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  for (const char* kind : {"coordinator", "server", "worker"}) {
    for (const pid_t pid : Pids(kind)) kill(pid, SIGKILL);
  }
  ExpectNobodyLeft();
  EXPECT_TRUE(fs::is_empty(Path("files")));
}

TEST_F(OffloadTest, AFolderThatIsNotThereIsNamedBeforeAStepIsMade) {
  Process& train =
      StartTraining("missing", {absl::StrCat("placement.offload_dir=", Path("nowhere"))});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectErrorLine(train, {"placement.offload_dir", Path("nowhere"), "check the path"});
  const auto losses = ReadLosses(Path("missing"));
  EXPECT_TRUE(!losses.ok() || losses->training.empty());
}

}  // namespace
}  // namespace tug
