// SPDX-License-Identifier: Apache-2.0
// `sync.record: ORDER` and `tug replay` as a user runs them: asynchronous runs, whose order is not
// known beforehand, are recomputed to the same bits.

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RecordedTest : public TugTest {
 protected:
  // Four workers and two servers of two lanes; each push is an update.
  static Texts Recorded(const Texts& more = {}) {
    return Texts{"sync.record=ORDER",         "sync.policy=ASP",   "cluster.workers=4",
                 "cluster.virtual_workers=4", "cluster.servers=2", "cluster.lanes_per_server=2"} +
           more;
  }

  void ExpectSameBits(const std::string& run) {
    const Process& replay = Run({"replay", Path(run)});
    EXPECT_EQ(replay.exit_code(), 0) << replay.err();
    EXPECT_THAT(replay.out(),
                AllOf(HasSubstr("updates of 4 virtual workers: same bits as"), HasSubstr(run)));
  }

  std::string LogOf(const std::string& run, const std::string& lane) const {
    return Path(run + "/order/timeline-001/" + lane + ".order");
  }
};

TEST_F(RecordedTest, AnAsynchronousRunIsComputedAgainToTheSameBits) {
  ASSERT_NO_FATAL_FAILURE(Train("run", Recorded()));
  ExpectSameBits("run");
}

TEST_F(RecordedTest, ReplaysSspRunWithSlowWorkerAndMicroBatches) {
  ASSERT_NO_FATAL_FAILURE(Train(
      "run",
      Recorded({"sync.policy=SSP", "sync.staleness=2", "straggler.slowdown=4",
                "train.global_batch=16", "train.micro_batch=2", "optimizer.clip=PER_BLOCK"})));
  ExpectSameBits("run");
}

TEST_F(RecordedTest, ReplaysDelayCompensation) {
  ASSERT_NO_FATAL_FAILURE(
      Train("run", Recorded({"optimizer.algorithm=SGD", "optimizer.learning_rate=0.05",
                             "sync.delay_compensation=0.04", "comm.push_codec.bf16={}",
                             "comm.pull_format=BF16"})));
  ExpectSameBits("run");
}

// Over TCP with small partitions, a step skips some of them; partitions not pulled have no version.
TEST_F(RecordedTest, ReplaysEmbeddingExchangedByRows) {
  ASSERT_NO_FATAL_FAILURE(
      Train("run", Recorded({"comm.shared_memory=false", "model.tied_head=false",
                             "comm.segment_elements=1024", "comm.partition_bytes=4096"})));
  ExpectSameBits("run");
}

TEST_F(RecordedTest, ADamagedLogIsFound) {
  ASSERT_NO_FATAL_FAILURE(Train("run", Recorded()));
  const std::string path = LogOf("run", "lane-001");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  file.seekg(200);
  const char byte = static_cast<char>(file.get());
  file.seekp(200);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  ExpectErrorLine(Run({"replay", Path("run")}), {"lane-001.order"});
  fs::remove(path);
  ExpectErrorLine(Run({"replay", Path("run")}), {"lane"});
}

// An intact log with weights that do not result from it.
TEST_F(RecordedTest, OtherWeightsAreFoundAndNamed) {
  ASSERT_NO_FATAL_FAILURE(Train("run", Recorded()));
  ASSERT_NO_FATAL_FAILURE(Train("other", Recorded({"seed=2"})));
  fs::remove_all(Path("other/order"));
  fs::copy(Path("run/order"), Path("other/order"), fs::copy_options::recursive);
  ExpectErrorLine(Run({"replay", Path("other")}),
                  {"bits differ from", "element", "in the checkpoint", "computed"});
}

TEST_F(RecordedTest, RefusesReplayOfUnrecordedRun) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"train.steps=10"}));
  ExpectErrorLine(Run({"replay", Path("run")}), {"sync.record"});
  ExpectErrorLine(Run({"replay", Path("nowhere")}), {"nowhere"});
}

}  // namespace
}  // namespace tug
