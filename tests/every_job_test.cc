// SPDX-License-Identifier: Apache-2.0
// Effects of machines, terminals and second jobs on processes (stopping them, signalling all at
// once, not reading output, limiting memory, steps faster than heartbeats), for jobs of every
// family and sync policy. Real processes.

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_descriptor.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A full pipe without a reader.
class FullPipe {
 public:
  FullPipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_ = FileDescriptor(ends[0]);
    write_end_ = FileDescriptor(ends[1]);
    const int size = fcntl(write_end(), F_SETPIPE_SZ, PIPE_BUF);
    const std::string bytes(static_cast<size_t>(size), 'x');
    EXPECT_EQ(write(write_end(), bytes.data(), bytes.size()), size);
  }
  int write_end() const { return write_end_.get(); }
  void CloseReadEnd() { read_end_ = FileDescriptor(); }

 private:
  FileDescriptor read_end_, write_end_;
};

const std::vector<Kind>& EveryKind() {
  static const auto& kinds = *new std::vector<Kind>{
      Kind{"Bsp", {}},
      Kind{"Ssp", {"sync.policy=SSP", "sync.staleness=1"}},
      Kind{"Asp", {"sync.policy=ASP"}},
      Kind{"Backup",
           {"cluster.virtual_workers=4", "cluster.workers=3", "sync.policy=BACKUP",
            "sync.backups=1"}},
      Kind{"LocalSteps", {"sync.local_steps=4"}},
      Kind{"AllReduce", {"exchange=ALL_REDUCE"}},
      Kind{"ErrorFeedback",
           {"comm.push_codec.top_k.density=0.1", "comm.push_codec.min_elements=0",
            "comm.push_codec.warmup_steps=0"}},
      Kind{"Classifier", {"data.path=lines.txt", "model.family=ENCODER"}},
      Kind{"EncoderDecoder",
           {"data.path=lines.txt", "model.family=ENCODER_DECODER", "train.global_batch=8",
            "train.micro_batch=2"}}};
  return kinds;
}

class EveryJobTest : public DaemonTest, public ::testing::WithParamInterface<Kind> {
 protected:
  // Folders of checkpoints that were started and never completed.
  std::vector<std::string> Unfinished(const std::string& run) const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(Path(run) + "/checkpoints")) {
      if (entry.path().extension() == ".tmp") found.push_back(entry.path().filename());
    }
    return found;
  }
};

// More than a hundred checkpoints between two heartbeats.
TEST_P(EveryJobTest, FrequentCheckpointsAreCommittedAndTheJobEnds) {
  ASSERT_NO_FATAL_FAILURE(Train(
      "run", GetParam().settings +
                 Texts{"train.steps=300", "checkpoint.interval=1", "fault.heartbeat_ms=500"}));
  EXPECT_EQ(NewestCheckpoint("run"), 300u);
  EXPECT_THAT(Unfinished("run"), testing::IsEmpty());
}

TEST_P(EveryJobTest, ACoordinatorThatStoodStillBlamesNobody) {
  Process& train =
      StartTraining("run", Endless() + GetParam().settings +
                               Texts{"fault.failure_timeout_ms=1000", "fault.heartbeat_ms=100"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  const std::vector<pid_t> coordinators = Pids("coordinator");
  ASSERT_EQ(coordinators.size(), 1u);
  kill(coordinators[0], SIGSTOP);
  // The failure timeout passes while it is stopped.
  EXPECT_FALSE(train.WaitForEnd(After(absl::Milliseconds(1500))));
  kill(coordinators[0], SIGCONT);
  const uint64_t step = ReadLosses(Path("run"))->training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", step + 5));
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
  EXPECT_THAT(train.err(), Not(HasSubstr("was lost")));
}

// Otherwise the next file that a process opens would become its standard error.
TEST_P(EveryJobTest, ClosedStreamsSpoilNoFile) {
  Process& train = StartProgram(
      "/bin/sh", Texts{"-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", fs::absolute(kTug).string()} +
                     TrainArguments("run", GetParam().settings + Texts{"train.steps=10"}));
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 0);
  for (const absl::string_view line :
       absl::StrSplit(ReadText(Path("run/metrics.jsonl")), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(nlohmann::json::accept(std::string(line))) << line;
  }
}

// Like a terminal after Ctrl-S, a frozen ssh connection or a pager; later the reader closes.
TEST_P(EveryJobTest, OutputThatNobodyReadsHoldsNothingUp) {
  FullPipe pipe;
  Process& train = StartOn(
      pipe.write_end(),
      TrainArguments("run", Endless() + GetParam().settings + Texts{"checkpoint.interval=5"}));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 10));
  ASSERT_TRUE(train.WaitUntil([&] { return NewestCheckpoint("run") >= 10; }, After(kPatience)));
  pipe.CloseReadEnd();
  const uint64_t checkpoint = NewestCheckpoint("run");
  ASSERT_TRUE(train.WaitUntil([&] { return NewestCheckpoint("run") >= checkpoint + 10; },
                              After(kPatience)));
  ASSERT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ExpectEndsWithCheckpoint(train, "run");
}

// After `stty tostop` a terminal stops background processes that write to it, which include a job's
// coordinator and nodes.
TEST_P(EveryJobTest, ATerminalThatStopsWritersHoldsNothingUp) {
  Process& train = StartProgram(
      "/usr/bin/script",
      {"--quiet", "--return", "--command",
       absl::StrCat("stty tostop; exec ", fs::absolute(kTug).string(), " ",
                    absl::StrJoin(
                        TrainArguments("run", GetParam().settings + Texts{"train.steps=10"}), " ")),
       "/dev/null"});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.out();
  EXPECT_EQ(train.exit_code(), 0) << train.out();
  ExpectEndsWithCheckpoint(train, "run");
}

TEST_P(EveryJobTest, ASecondStartInItsFolderIsRefusedAndChangesNothing) {
  Process& train =
      StartTraining("run", Endless() + GetParam().settings + Texts{"checkpoint.interval=5"});
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  const std::string config = ReadText(Path("run") + "/" + kConfigFile);
  ExpectErrorLine(Run({"train", job(), "--resume", Path("run")}),
                  {"another coordinator is running in " + Path("run"), "tug status"});
  EXPECT_EQ(ReadText(Path("run") + "/" + kConfigFile), config);
  const uint64_t checkpoint = NewestCheckpoint("run");
  ASSERT_TRUE(
      train.WaitUntil([&] { return NewestCheckpoint("run") >= checkpoint + 10; }, After(kPatience)))
      << train.err();
  ASSERT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A batch system's limit (ulimit -v) that is too low for lanes to map shared memory. They fall back
// to TCP, except two ranks of an all-reduce if only one of them could map its part.
TEST_P(EveryJobTest, ALittleAddressSpaceIsEnoughOrEndsItWithTheRemedy) {
  const Texts train = TrainArguments("run", GetParam().settings + Texts{"train.steps=20"});
  Process& limited = StartLimited(train, RLIMIT_AS, 1'500'000'000);
  ASSERT_TRUE(limited.WaitForEnd(After(kPatience))) << limited.err();
  if (limited.exit_code() == 0) return;
  EXPECT_STREQ(GetParam().name, "AllReduce") << limited.err();
  ExpectErrorLine(limited, {"ulimit -v", "comm.shared_memory"});
}
#endif

TEST_P(EveryJobTest, TooFewOpenFilesEndItAtOnceWithTheReason) {
  Process& limited =
      StartLimited(TrainArguments("run", Endless() + GetParam().settings), RLIMIT_NOFILE, 16);
  ASSERT_TRUE(limited.WaitForEnd(After(kPatience))) << limited.err();
  ExpectErrorLine(limited, {"the limit of open files is 16", "ulimit -n"});
}

// systemctl stop, scancel and any kill of a control group do the same.
TEST_P(EveryJobTest, ASigtermToEveryProcessEndsItInOrder) {
  Process& train = StartTraining("run", Endless() + GetParam().settings);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  for (const char* kind : {"train", "coordinator", "server", "worker"}) {
    for (const pid_t pid : Pids(kind)) kill(pid, SIGTERM);
  }
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

INSTANTIATE_TEST_SUITE_P(Jobs, EveryJobTest, ::testing::ValuesIn(EveryKind()), NameOfKind);

// Each node waits in vain for its coordinator, then a replacement is started: half a minute without
// computation, so all jobs run at the same time.
TEST_F(TugTest, JobsWhoseNodesCannotReachTheirCoordinatorEndWithTheReason) {
  // Without links: in a new network namespace the loopback device is down.
  const Texts alone = {"--user", "--map-root-user", "--net", "--"};
  const std::string unshare = "/usr/bin/unshare";
  if (Process& able = StartProgram(unshare, alone + Texts{"/bin/true"});
      !able.WaitForEnd(After(kPatience)) || able.exit_code() != 0) {
    GTEST_SKIP() << "network namespaces cannot be made here: " << able.err();
  }
  std::vector<Process*> jobs;
  for (const Kind& kind : EveryKind()) {
    jobs.push_back(&StartProgram(unshare, alone + Texts{fs::absolute(kTug).string()} +
                                              TrainArguments(kind.name, kind.settings)));
  }
  for (Process* job : jobs) {
    ASSERT_TRUE(job->WaitForEnd(After(2 * kPatience))) << job->err();
    ExpectErrorLine(*job, {"cannot reach the coordinator at "});
  }
}

}  // namespace
}  // namespace tug
