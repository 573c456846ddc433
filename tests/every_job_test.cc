// What machines do to processes (stop them, signal all at once, make steps faster than heartbeats),
// for jobs of every family and sync policy. Real processes.

#include <signal.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/run_result.h"
#include "tests/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class EveryJobTest : public DaemonTest, public ::testing::WithParamInterface<Kind> {
 protected:
  // Folders of checkpoints that were begun and never completed.
  std::vector<std::string> Unfinished(const std::string& run) const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(Path(run) + "/checkpoints")) {
      if (entry.path().extension() == ".tmp") found.push_back(entry.path().filename());
    }
    return found;
  }
};

// A hundred checkpoints and more from one heartbeat to the next.
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
  // As long as it stands still.
  EXPECT_FALSE(train.WaitForEnd(After(absl::Milliseconds(1500))));
  kill(coordinators[0], SIGCONT);
  const uint64_t step = ReadLosses(Path("run"))->training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", step + 5));
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
  EXPECT_THAT(train.err(), Not(HasSubstr("was lost")));
}

// As systemctl stop, scancel and any kill of a control group do.
TEST_P(EveryJobTest, ASigtermToEveryProcessEndsItInOrder) {
  Process& train = StartTraining("run", Endless() + GetParam().settings);
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  for (const char* kind : {"train", "coordinator", "server", "worker"}) {
    for (const pid_t pid : Pids(kind)) kill(pid, SIGTERM);
  }
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, EveryJobTest,
    ::testing::Values(Kind{"Bsp", {}}, Kind{"Ssp", {"sync.policy=SSP", "sync.staleness=1"}},
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
                           {"data.path=lines.txt", "model.family=ENCODER_DECODER",
                            "train.global_batch=8", "train.micro_batch=2"}}),
    NameOfKind);

}  // namespace
}  // namespace tug
