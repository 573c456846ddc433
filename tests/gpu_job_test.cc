// Jobs whose workers compute on a GPU, which is emulated, or are to and cannot.

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/run_result.h"
#include "tests/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

class GpuJobTest : public DaemonTest {
 protected:
  // `tug train` on a host with an emulated GPU.
  void TrainEmulated(const std::string& run, const Texts& settings) {
    Process& process = StartProgram("cli/tug_emulated",
                                    Texts{"train", job(), "--run-dir", Path(run)} + Set(settings));
    ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << process.err();
    ASSERT_EQ(process.exit_code(), 0) << process.err();
    EXPECT_THAT(process.err(), HasSubstr("workers compute on emulated on the CPU, 4 GiB"));
  }
  Losses LossesOf(const std::string& run) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(losses.ok()) << losses.status();
    return losses.ok() ? *losses : Losses();
  }
};

// By default a worker takes the GPU. Each loss is within a thousandth of the CPU's (seen: 1e-6,
// more as steps add up), and a second run has the same bits.
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
  const auto state = ReadState(Path("gpu")), same = ReadState(Path("again"));
  ASSERT_TRUE(state.ok() && same.ok());
  ExpectSameState(*state, *same);
}

// In any build: no host has a GPU of that number.
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
