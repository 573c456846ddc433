// SPDX-License-Identifier: Apache-2.0
// The same job under every placement of state (a parameter server, and ZeRO's stages), over shared
// memory and over TCP, ends with the same bits. Real processes, 200 steps.

#include <signal.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// One micro-batch per virtual worker.
const Texts kJob = {"train.steps=200", "checkpoint.interval=200", "train.eval_interval=100",
                    "train.micro_batch=1"};

Texts Placed(const std::string& kind) { return {"placement.kind=" + kind, "cluster.servers=2"}; }
Texts Zero3(uint32_t prefetch_blocks) {
  return Placed("ZERO3") + Texts{absl::StrCat("placement.prefetch_blocks=", prefetch_blocks)};
}

class PlacementTest : public TugTest {
 protected:
  CheckpointState StateOf(const std::string& run) const {
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(CheckpointState());
  }
  Losses LossesOf(const std::string& run) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(losses.ok()) << losses.status();
    return losses.value_or(Losses());
  }
  struct Traffic {
    double pushed = 0;
    double pulled = 0;
  };
  // Bytes per worker and step: the mean over steps without an evaluation nearby.
  Traffic TrafficOf(const std::string& run, int workers) const {
    std::ifstream file(Path(run) + "/metrics.jsonl");
    Traffic sum;
    int steps = 0;
    for (std::string line; std::getline(file, line);) {
      if (!absl::StrContains(line, "\"kind\":\"step\"")) continue;
      const auto json = nlohmann::json::parse(line);
      const int step = json.at("step").get<int>() % 100;
      if (step < 5 || step > 90) continue;
      sum.pushed += json.at("pushed_bytes").get<double>();
      sum.pulled += json.at("pulled_bytes").get<double>();
      ++steps;
    }
    EXPECT_GT(steps, 100);
    return {sum.pushed / steps / workers, sum.pulled / steps / workers};
  }
  // Size of the job's parameters in FP32.
  static double ParameterBytes(const CheckpointState& state) {
    double bytes = 0;
    for (const auto& [name, bits] : state.bits) {
      if (absl::EndsWith(name, "/w")) bytes += 4.0 * static_cast<double>(bits.size());
    }
    return bytes;
  }
  // Compares a job on one server with the same job under other placements.
  void ExpectSameBits(const Texts& settings) {
    Train("servers", kJob + settings + Texts{"cluster.servers=1"});
    ASSERT_FALSE(HasFailure());
    const CheckpointState expected = StateOf("servers");
    const Losses losses = LossesOf("servers");
    struct Case {
      const char* name;
      Texts settings;
    };
    for (const Case& c :
         {Case{"zero1", Placed("ZERO1")}, Case{"zero2", Placed("ZERO2")}, Case{"zero3-0", Zero3(0)},
          Case{"zero3-1", Zero3(1)}, Case{"zero3-3", Zero3(3)}}) {
      SCOPED_TRACE(c.name);
      Train(c.name, kJob + settings + c.settings);
      ASSERT_FALSE(HasFailure());
      ExpectSameState(expected, StateOf(c.name));
      ExpectSameLosses(losses, LossesOf(c.name));
    }
  }
};

TEST_F(PlacementTest, ChangesNoBitOverSharedMemory) {
  ExpectSameBits({"train.global_batch=2", "model.tied_head=false"});
}

TEST_F(PlacementTest, ChangesNoBitOverTcpWithATiedHead) {
  ExpectSameBits({"train.global_batch=2", "comm.shared_memory=false", "model.tied_head=true"});
}

TEST_F(PlacementTest, ChangesNoBitWithTwoVirtualWorkersEachAndTwoMicroBatches) {
  ExpectSameBits({"train.global_batch=8", "cluster.virtual_workers=4", "model.tied_head=false",
                  "comm.shared_memory=false"});
}

// P bytes of parameters are pushed once and pulled once per step; with ZERO3 pulled twice, except
// for the weights in the window where forward turns into backward: the head (and the tied
// embedding).
TEST_F(PlacementTest, MovesTwiceTheParametersInAStepAndWithoutKeepingWeightsThreeTimes) {
  const Texts job = kJob + Texts{"train.global_batch=2", "comm.shared_memory=false",
                                 "model.tied_head=true", "model.layers=6", "comm.pull_format=FP32"};
  Train("zero2", job + Placed("ZERO2"));
  Train("zero3", job + Zero3(0));
  ASSERT_FALSE(HasFailure());
  const CheckpointState state = StateOf("zero3");
  const double parameters = ParameterBytes(state);
  const Traffic two = TrafficOf("zero2", 2);
  EXPECT_NEAR(two.pushed / parameters, 1, 0.01);
  EXPECT_NEAR(two.pulled / parameters, 1, 0.01);
  const Traffic three = TrafficOf("zero3", 2);
  EXPECT_NEAR(three.pushed / parameters, 1, 0.01);
  EXPECT_NEAR(three.pulled / parameters, 2, 0.25);
  std::cout << "of the parameters' bytes, a worker in a step: zero2 pushes "
            << two.pushed / parameters << ", pulls " << two.pulled / parameters << "; zero3 pushes "
            << three.pushed / parameters << ", pulls " << three.pulled / parameters << std::endl;
}

TEST_F(PlacementTest, AWorkerThatIsLostWhileItKeepsFewWeightsChangesNoBit) {
  const Texts job = kJob + Texts{"train.global_batch=4", "cluster.virtual_workers=4",
                                 "fault.on_worker_loss=REASSIGN"};
  Train("undisturbed", job + Zero3(1));
  ASSERT_FALSE(HasFailure());
  Process& train = StartTraining("killed", job + Zero3(1) + Texts{"straggler.slowdown=4"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "killed", 40));
  const std::vector<pid_t> pids = Pids("worker");
  ASSERT_EQ(pids.size(), 2u);
  ASSERT_EQ(kill(pids.back(), SIGKILL), 0);
  ASSERT_TRUE(train.WaitForEnd(After(2 * kPatience))) << train.err();
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_THAT(train.err(), HasSubstr("was lost"));
  ExpectSameState(StateOf("undisturbed"), StateOf("killed"));
}

}  // namespace
}  // namespace tug
