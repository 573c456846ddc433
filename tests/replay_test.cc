// SPDX-License-Identifier: Apache-2.0
// `compute: REPLAY`: workers that sleep as long as a profile says and exchange real bytes.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 10;
constexpr double kStepMs = 40;                      // compute time of the profile below
constexpr uint64_t kBytesOfStep = 2 * 4 * 103'000;  // pushed by two workers

constexpr char kProfile[] = R"(
name: "late"
batch: 16
blocks { name: "a" parameters: 2000 forward_ms: 10 backward_ms: 20 }
blocks { name: "b" parameters: 1000 forward_ms: 3 backward_ms: 5 }
blocks { name: "fc" parameters: 100000 forward_ms: 1 backward_ms: 1 }
)";

class ReplayTest : public DaemonTest {
 protected:
  ReplayTest() {
    Write("late.textproto", kProfile);
    Write("job.textproto", absl::StrCat(R"(
name: "late"
compute: REPLAY
replay { profile: "late.textproto" }
cluster { servers: 2 workers: 2 lanes_per_server: 1 }
optimizer { clip: OFF }
comm { segment_elements: 4096 partition_bytes: 16384 }
checkpoint { interval: 5 }
fault { heartbeat_ms: 20 }
train { steps: )",
                                        kSteps, " }"));
  }

  // Expects the error of a refused job, and that it leaves nothing behind.
  void ExpectRefused(const Texts& settings, const Texts& parts) {
    const Process& train = Run(Texts{"train", job(), "--run-dir", Path("refused")} + Set(settings));
    ExpectErrorLine(train, parts);
    EXPECT_FALSE(fs::exists(Path("refused")));
  }
};

TEST_F(ReplayTest, EndsTakesTheTimeOfTheProfileMovesItsBytesAndSaysReplay) {
  Process& train = StartTraining("run", {});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_THAT(train.err(),
              AllOf(HasSubstr("replay of late: 103000 parameters in 3 blocks"),
                    HasSubstr("replay of late  step 10/10"), HasSubstr("samples/s"),
                    HasSubstr("done, replay of late: 10 of 10 steps"), HasSubstr("ms per step"),
                    Not(HasSubstr("loss")), Not(HasSubstr("tokens")), Not(HasSubstr("next:"))));
  EXPECT_THAT(ReadText(Path("run/config.textproto")),
              AllOf(HasSubstr("compute: REPLAY"), HasSubstr("resolved_profile"),
                    HasSubstr("global_batch: 32")));
  EXPECT_FALSE(fs::exists(Path("run/loss.svg")));
  int steps = 0;
  uint64_t pushed_bytes = 0;
  std::string notices;
  for (const absl::string_view line :
       absl::StrSplit(ReadText(Path("run/metrics.jsonl")), '\n', absl::SkipEmpty())) {
    const nlohmann::json json = nlohmann::json::parse(std::string(line));
    const std::string kind = json["kind"].get<std::string>();
    if (kind == "notice") absl::StrAppend(&notices, json["text"].get<std::string>(), "\n");
    if (kind != "step") continue;
    ++steps;
    EXPECT_GE(json["seconds"].get<double>(), kStepMs / 1e3 * 0.98) << line;
    EXPECT_EQ(json["tokens"].get<uint64_t>(), 2u * 16) << line;
    pushed_bytes += json["pushed_bytes"].get<uint64_t>();
  }
  EXPECT_EQ(steps, kSteps);
  EXPECT_THAT(notices, HasSubstr("replay of late"));
  // Pushes of the last step may be sent after its report.
  EXPECT_GE(pushed_bytes, (kSteps - 1) * kBytesOfStep);
  EXPECT_LE(pushed_bytes, kSteps * kBytesOfStep);
}

TEST_F(ReplayTest, GivesTheSameBitsInOneProcessAndInTwoAndResumes) {
  ASSERT_NO_FATAL_FAILURE(Train("two"));
  const Texts one = {"cluster.workers=1",        "cluster.servers=1",   "cluster.virtual_workers=2",
                     "comm.shared_memory=false", "comm.scheduler=FIFO", "replay.time_scale=0"};
  ASSERT_NO_FATAL_FAILURE(Train("one", one));
  ExpectSameState(Path("two"), Path("one"));
  ExpectResumes("two",
                {"replay.time_scale=0.1", "optimizer.decay_steps=10", "optimizer.warmup_steps=1"});
}

// The other hosts do not have the profile.
TEST_F(ReplayTest, OnlyTheCoordinatorReadsTheProfile) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({}));
  fs::remove(Path("late.textproto"));
  StartServers(2);
  StartWorkers(2);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
}

TEST_F(ReplayTest, StatusSaysReplay) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  const Process& status = Run({"status", Path("run")});
  EXPECT_THAT(status.out(),
              AllOf(ContainsRegex("replay of late, [0-9,]+ samples/s"), Not(HasSubstr("loss"))));
  EXPECT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
}

TEST_F(ReplayTest, ShippedProfilesAreFoundByName) {
  for (const std::string name : {"vgg16", "resnet50", "gpt2_124m"}) {
    ASSERT_NO_FATAL_FAILURE(Train(name, {"replay.profile=" + name, "replay.size_scale=0.001",
                                         "replay.time_scale=0.01", "train.steps=2"}));
  }
}

TEST_F(ReplayTest, RefusesInvalidProfilesAndSettings) {
  ExpectRefused({"replay.profile=vgg17"}, {"vgg17", "gpt2_124m, resnet50, vgg16"});
  ExpectRefused({"data.path=text.txt"}, {"data.path", "compute = REPLAY"});
  ExpectRefused({"compute=CPU"}, {"replay.profile", "compute = CPU"});
  Write("bad.textproto", "name: 'x' batch: 1");
  ExpectRefused({"replay.profile=bad.textproto"}, {"bad.textproto", "no blocks"});
  Write("bad.textproto", "name: 'x' batch: 1 blocks { name: 'a' parameters: 1 forward_ms: -1 }");
  ExpectRefused({"replay.profile=bad.textproto"},
                {"bad.textproto", "block 'a'", "forward_ms = -1"});
  Write("bad.textproto", "name: 'x' batch: 1 blocks { name: 'a' parameters: 1.5 }");
  ExpectRefused({"replay.profile=bad.textproto"}, {"bad.textproto:1:"});
}

TEST_F(ReplayTest, ACheckpointOfAReplayIsNoModel) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"train.steps=1", "replay.time_scale=0"}));
  for (const Texts& command :
       {Texts{"sample"}, Texts{"eval"}, Texts{"export", "--hf", Path("hf")}}) {
    ExpectErrorLine(Run(command + Texts{"--from", Path("run")}), {"written by a replay"});
  }
  Write("text.textproto", "data { path: 'text.txt' } cluster { workers: 2 }");
  ExpectErrorLine(Run({"train", Path("text.textproto"), "--init-from", Path("run")}),
                  {"written by a replay"});
}

}  // namespace
}  // namespace tug
