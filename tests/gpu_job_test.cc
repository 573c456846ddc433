// SPDX-License-Identifier: Apache-2.0
// Jobs whose workers compute on an emulated GPU, or should use a GPU and cannot.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// Environment variable: number of emulated GPUs.
constexpr char kGpus[] = "TUG_EMULATED_GPUS";

class GpuJobTest : public DaemonTest {
 protected:
  // Parameters of a `tug train` run.
  struct Emulated {
    int gpus = 1;     // of the host
    Texts more = {};  // more arguments
    std::string says = "workers compute on emulated on the CPU, 4 GiB";
  };

  ~GpuJobTest() override { unsetenv(kGpus); }

  void TrainEmulated(const std::string& run, const Texts& settings) {
    TrainEmulated(run, settings, Emulated());
  }
  void TrainEmulated(const std::string& run, const Texts& settings, const Emulated& emulated) {
    setenv(kGpus, std::to_string(emulated.gpus).c_str(), 1);
    Process& process =
        StartProgram("cli/tug_emulated",
                     Texts{"train", job(), "--run-dir", Path(run)} + Set(settings) + emulated.more);
    ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << process.err();
    ASSERT_EQ(process.exit_code(), 0) << process.err();
    EXPECT_THAT(process.err(), HasSubstr(emulated.says));
  }
  Losses LossesOf(const std::string& run) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(losses.ok()) << losses.status();
    return losses.ok() ? *losses : Losses();
  }
};

// By default a worker uses the GPU. Each loss is within a thousandth of the CPU's (observed: 1e-6,
// growing with the steps), and a second run has the same bits.
TEST_F(GpuJobTest, LearnsAsOnTheCpu) {
  const Texts steps = {
      "train.steps=8",    "train.eval_interval=4",         "checkpoint.interval=0",
      "model.context=16", "data.validation_fraction=0.02", "optimizer.learning_rate=0.01"};
  ASSERT_NO_FATAL_FAILURE(Train("cpu", steps + Texts{"device=CPU"}));
  ASSERT_NO_FATAL_FAILURE(TrainEmulated("gpu", steps + Texts{"device=AUTO"}));
  ASSERT_NO_FATAL_FAILURE(TrainEmulated("again", steps + Texts{"device=CUDA"}));
  const Losses cpu = LossesOf("cpu"), gpu = LossesOf("gpu");
  ASSERT_EQ(gpu.training.size(), 8u);
  for (const auto& [step, loss] : gpu.training) {
    EXPECT_NEAR(loss / cpu.training.at(step), 1, 1e-3) << step;
  }
  ASSERT_EQ(gpu.validation.size(), cpu.validation.size());
  for (const auto& [step, loss] : gpu.validation) {
    EXPECT_NEAR(loss / cpu.validation.at(step), 1, 1e-3) << step;
  }
  EXPECT_LT(gpu.training.at(8), gpu.training.at(1));
  ExpectSameLosses(gpu, LossesOf("again"));
  ExpectSameState(Path("gpu"), Path("again"));
}

// With at least as many GPUs as workers, each worker gets its own GPUs, which split its
// micro-batches.
TEST_F(GpuJobTest, WorkersShareTheGpusOfTheHost) {
  const Texts steps = {"train.steps=6",
                       "train.eval_interval=3",
                       "checkpoint.interval=0",
                       "model.context=16",
                       "data.validation_fraction=0.02",
                       "optimizer.learning_rate=0.01",
                       "cluster.workers=1",
                       "train.micro_batch=2"};
  ASSERT_NO_FATAL_FAILURE(Train("cpu", steps + Texts{"device=CPU"}));
  ASSERT_NO_FATAL_FAILURE(
      TrainEmulated("gpus", steps + Texts{"device=AUTO"},
                    {.gpus = 2, .says = "workers compute on 2 x emulated on the CPU, 4 GiB"}));
  ASSERT_NO_FATAL_FAILURE(
      TrainEmulated("each", steps + Texts{"device=AUTO", "cluster.workers=2"}, {.gpus = 2}));
  // Uses at most one GPU per sample of a micro-batch.
  ASSERT_NO_FATAL_FAILURE(
      TrainEmulated("one", steps + Texts{"device=AUTO", "train.micro_batch=1"}, {.gpus = 2}));
  const Losses cpu = LossesOf("cpu"), gpus = LossesOf("gpus"), each = LossesOf("each");
  ASSERT_EQ(gpus.training.size(), 6u);
  for (const auto& [step, loss] : cpu.training) {
    EXPECT_NEAR(gpus.training.at(step) / loss, 1, 1e-3) << step;
    EXPECT_NEAR(each.training.at(step) / loss, 1, 1e-3) << step;
  }
}

// A manually started job; one of its two workers has two GPUs.
TEST_F(GpuJobTest, AWorkerTakesTheGpusThatItIsTold) {
  setenv(kGpus, "3", 1);
  ASSERT_NO_FATAL_FAILURE(
      StartCoordinator({"device=CUDA", "train.steps=6", "model.context=16", "checkpoint.interval=0",
                        "train.eval_interval=0", "train.global_batch=6", "train.micro_batch=3"}));
  StartServers(2);
  for (const char* gpus : {"0,1", "2"}) {
    nodes_.push_back(
        &StartProgram("cli/tug_emulated", {"worker", "--coordinator", address(), "--gpu", gpus}));
  }
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience))) << coordinator().err();
  EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
  EXPECT_THAT(coordinator().err(), HasSubstr("workers compute on 2 x emulated on the CPU, 4 GiB"));
  EXPECT_THAT(coordinator().err(), HasSubstr("workers compute on emulated on the CPU, 4 GiB"));
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    EXPECT_EQ(node->exit_code(), 0) << node->err();
  }
}

// AUTO falls back to the CPU only if no GPU can be used.
TEST_F(GpuJobTest, EndsWithOneErrorWhereAWorkerHasSomeOfItsGpusOnly) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({"device=AUTO"}));
  StartServers(2);
  for (int i = 0; i < 2; ++i) {
    nodes_.push_back(
        &StartProgram("cli/tug_emulated", {"worker", "--coordinator", address(), "--gpu", "0,7"}));
  }
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  ExpectErrorLine(coordinator(), {"GPU 7 cannot be used, but GPU 0 can", "no GPU"});
  for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
}

// The GPU encodes gradients and keeps their residuals, which are saved to and restored from
// checkpoints.
TEST_F(GpuJobTest, EncodesOnTheGpuAndGoesOnFromACheckpoint) {
  const Texts settings = {"train.steps=6",
                          "train.eval_interval=0",
                          "checkpoint.interval=3",
                          "model.context=16",
                          "data.validation_fraction=0.02",
                          "optimizer.learning_rate=0.01",
                          "comm.push_codec.int8={}",
                          "comm.push_codec.error_feedback=true"};
  const std::string says = "gradients are encoded there too";
  ASSERT_NO_FATAL_FAILURE(Train("cpu", settings + Texts{"device=CPU"}));
  ASSERT_NO_FATAL_FAILURE(TrainEmulated("gpu", settings + Texts{"device=CUDA"}, {.says = says}));
  const Losses cpu = LossesOf("cpu"), gpu = LossesOf("gpu");
  ASSERT_EQ(gpu.training.size(), 6u);
  for (const auto& [step, loss] : gpu.training) {
    EXPECT_NEAR(loss / cpu.training.at(step), 1, 1e-3) << step;
  }
  const std::string step_3 = Path("gpu") + "/checkpoints/step-00000003";
  const auto is_residual = [](const auto& entry) {
    return absl::StartsWith(entry.path().filename().string(), "residual-");
  };
  const std::filesystem::directory_iterator files(step_3);
  EXPECT_GT(std::count_if(begin(files), end(files), is_residual), 0);
  ASSERT_NO_FATAL_FAILURE(TrainEmulated("resumed", settings + Texts{"device=CUDA"},
                                        {.more = {"--resume", step_3}, .says = says}));
  ExpectSameState(Path("gpu"), Path("resumed"));
}

// Works in any build: no host has a GPU of that number.
TEST_F(GpuJobTest, EndsWithOneErrorWhereAWorkerHasNone) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({"device=CUDA"}));
  StartServers(2);
  StartWorkers(2, {"--gpu", "1000"});
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  const Texts parts = {"device: CUDA", "no GPU", "set device to AUTO or CPU"};
  ExpectErrorLine(coordinator(), parts);
  for (Process* node : nodes_) {
    ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
    ExpectErrorLine(*node, parts);
  }
}

}  // namespace
}  // namespace tug
