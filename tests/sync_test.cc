// SPDX-License-Identifier: Apache-2.0
// Every sync policy with real processes: trains to the end, stops in order when told to, and
// resumes from its checkpoint.

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// Four virtual workers, so that one worker runs two.
const Texts kFour = {"cluster.virtual_workers=4", "cluster.workers=3"};

class SyncTest : public TugTest, public ::testing::WithParamInterface<Kind> {
 protected:
  Texts settings() const { return kFour + GetParam().settings; }
  // Every step after `first`, up to `steps`, has a loss, and the last evaluation is better than
  // chance over the letters of the text (about 3.3 nats).
  void ExpectLearned(const std::string& run, uint64_t first, uint64_t steps) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    ASSERT_TRUE(losses.ok()) << losses.status();
    EXPECT_EQ(losses->training.size(), steps - first);
    ASSERT_FALSE(losses->validation.empty());
    EXPECT_EQ(losses->validation.rbegin()->first, steps);
    EXPECT_LT(losses->validation.rbegin()->second, 3.3);
    EXPECT_EQ(NewestCheckpoint(run), steps);
  }
};

TEST_P(SyncTest, TrainsToTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Train("run", settings() + Texts{"train.steps=60"}));
  ExpectLearned("run", 0, 60);
}

TEST_P(SyncTest, AStragglerChangesNothingButTheTime) {
  const Texts straggler = {"train.steps=20", "straggler.virtual_worker=3", "straggler.slowdown=4",
                           "straggler.pause_probability=0.2", "straggler.pause_ms=5"};
  ASSERT_NO_FATAL_FAILURE(Train("run", settings() + straggler));
  EXPECT_EQ(NewestCheckpoint("run"), 20u);
}

TEST_P(SyncTest, EndsInOrderWhenToldToAndGoesOnFromItsCheckpoint) {
  Process& train = StartTraining("run", Endless() + settings());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
  const uint64_t from = NewestCheckpoint("run");
  ASSERT_GT(from, 0u);
  const Process& resumed = Run(
      Texts{"train", job(), "--resume", Path("run")} +
      Set(Texts{absl::StrCat("train.steps=", from + 20), "checkpoint.interval=0"} + settings()));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), HasSubstr(absl::StrCat("from step ", from)));
  EXPECT_EQ(NewestCheckpoint("run"), from + 20);
}

// A checkpoint in the middle of a run, when virtual workers are at different clocks.
TEST_P(SyncTest, GoesOnFromACheckpointOfARunThatWasKilled) {
  Process& train = StartTraining("run", Endless() + Texts{"checkpoint.interval=7"} + settings());
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(train, "run"));
  train.Signal(SIGKILL);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectNobodyLeft();
  const uint64_t from = NewestCheckpoint("run");
  const Process& resumed = Run(
      Texts{"train", job(), "--resume", Path("run")} +
      Set(Texts{absl::StrCat("train.steps=", from + 20), "checkpoint.interval=0"} + settings()));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), HasSubstr(absl::StrCat("from step ", from)));
  EXPECT_EQ(NewestCheckpoint("run"), from + 20);
}

// With a single virtual worker nothing waits and nothing is stale: all policies are equivalent.
class Alone : public TugTest {};

TEST_F(Alone, SingleVirtualWorkerGetsBitsOfBspUnderEveryPolicy) {
  const Texts alone = {"cluster.virtual_workers=1", "cluster.workers=1", "optimizer.clip=OFF"};
  ASSERT_NO_FATAL_FAILURE(Train("bsp", alone));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("bsp"));
  for (const std::string policy : {"SSP", "ASP"}) {
    SCOPED_TRACE(policy);
    ASSERT_NO_FATAL_FAILURE(Train(policy, alone + Texts{"sync.policy=" + policy}));
    ExpectSameState(Path("bsp"), Path(policy));
    ExpectSameLosses(*losses, *ReadLosses(Path(policy)));
  }
}

// Where pushes are updates, the worker clips: by the same norm, with different rounding.
TEST_F(Alone, ClippingInTheWorkerIsThatOfTheLanes) {
  for (const std::string clip : {"GLOBAL", "PER_BLOCK"}) {
    SCOPED_TRACE(clip);
    const Texts alone = {"cluster.virtual_workers=1", "cluster.workers=1",
                         "optimizer.clip_norm=0.05", "optimizer.clip=" + clip};
    ASSERT_NO_FATAL_FAILURE(Train("bsp" + clip, alone));
    ASSERT_NO_FATAL_FAILURE(Train("asp" + clip, alone + Texts{"sync.policy=ASP"}));
    const absl::StatusOr<Losses> by_lanes = ReadLosses(Path("bsp" + clip));
    const absl::StatusOr<Losses> by_worker = ReadLosses(Path("asp" + clip));
    ASSERT_TRUE(by_lanes.ok() && by_worker.ok());
    ASSERT_EQ(by_lanes->training.size(), by_worker->training.size());
    for (const auto& [step, loss] : by_lanes->training) {
      EXPECT_NEAR(by_worker->training.at(step), loss, 1e-3) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sync, SyncTest,
    ::testing::Values(Kind{"Bsp", {}}, Kind{"Ssp", {"sync.policy=SSP", "sync.staleness=1"}},
                      Kind{"SspWithoutLead",
                           {"sync.policy=SSP", "sync.staleness=0", "optimizer.clip=OFF"}},
                      Kind{"Asp", {"sync.policy=ASP"}},
                      Kind{"AspOverTcpInRows",
                           {"sync.policy=ASP", "comm.shared_memory=false", "model.tied_head=false",
                            "optimizer.clip=PER_BLOCK"}},
                      Kind{"AspWithDelayCompensation",
                           {"sync.policy=ASP", "optimizer.algorithm=SGD",
                            "optimizer.learning_rate=0.1", "sync.delay_compensation=0.04"}},
                      Kind{"Backup", {"sync.policy=BACKUP", "sync.backups=1"}},
                      Kind{"BackupOverTcp", {"sync.policy=BACKUP", "comm.shared_memory=false"}},
                      Kind{"LocalSteps", {"sync.local_steps=4"}}),
    NameOfKind);

}  // namespace
}  // namespace tug
