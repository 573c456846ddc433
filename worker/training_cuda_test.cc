// SPDX-License-Identifier: Apache-2.0
// The training loop with a model on the GPU, compared with the CPU's.
//
// Bound: relative error of a loss. AdamW may turn the error of a pass (model_cuda_test.cc: 1e-5 of
// a gradient tensor's norm) into a whole step where a mean square is small, and steps add up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "config/push_plan.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "model/gpu/multi_gpu_model.h"
#include "worker/training_loop_test_support.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_memory.h"
#endif

namespace tug {
namespace {

constexpr double kLossBound = 1e-4;

class TrainingCudaTest : public TrainingLoopTest {
 protected:
  TrainingCudaTest() {
    config_.mutable_model()->set_layers(2);
    config_.mutable_train()->set_eval_interval(0);
    config_.mutable_train()->set_steps(steps_ = 20);
    config_.mutable_optimizer()->set_warmup_steps(2);
    config_.mutable_optimizer()->set_learning_rate(1e-2);
  }
  void SetUp() override {
    const absl::Status gpu = kernels::cuda::CheckGpu();
    if (absl::IsUnavailable(gpu) && !kernels::cuda::IsGpuRequired()) {
      GTEST_SKIP() << "skipped: " << gpu.message();
    }
    kernels::cuda::SetEmulationSeed();
  }

  Outcome TrainOnGpu(const std::vector<int>& gpus = {0}) {
    model_of_ = [this, gpus](TrainingRig& rig) {
      auto made = NewMultiGpuModel(
          gpus, {.model = rig.model_options(), .bf16_weights = PushPlanOf(config_).binds_bf16});
      TUG_CHECK_OK(made);
      return std::move(made->model);
    };
    Outcome outcome = Train();
    model_of_ = nullptr;
    return outcome;
  }
  // Bounds the largest error of all steps.
  void ExpectClose(const Outcome& gpu, const Outcome& cpu, double bound) {
    ASSERT_EQ(gpu.losses.size(), steps_ * kVirtualWorkers);
    ASSERT_EQ(cpu.losses.size(), gpu.losses.size());
    double most = 0;
    for (size_t i = 0; i < gpu.losses.size(); ++i) {
      most = std::max(most, std::abs(gpu.losses[i] / cpu.losses[i] - 1));
    }
    std::cout << "losses are off by " << most << " at most" << std::endl;
    EXPECT_LE(most, bound);
    EXPECT_LT(cpu.losses.back(), cpu.losses.front() * 0.95) << "it learns";
    EXPECT_EQ(gpu.targets, cpu.targets);
    EXPECT_EQ(gpu.traffic.pushed_bytes, cpu.traffic.pushed_bytes);
    EXPECT_EQ(gpu.held.weights, gpu.predicted_held.weights);
    EXPECT_EQ(gpu.held.gradients, gpu.predicted_held.gradients);
  }
};

TEST_F(TrainingCudaTest, LearnsAsTheCpuDoesAndHasTheSameBitsAgain) {
  const Outcome gpu = TrainOnGpu();
  ExpectClose(gpu, Train(), kLossBound);
  ExpectSameBits(gpu, TrainOnGpu());
}

// Micro-batches of one sample per GPU, and of one sample that the first GPU computes alone.
TEST_F(TrainingCudaTest, SeveralGpusLearnAsTheCpuDoesAndHaveTheSameBitsAgain) {
#if TUG_CUDA_EMULATED
  kernels::emulation::SetDeviceCount(2);
#endif
  if (kernels::cuda::ListDevices().size() < 2) GTEST_SKIP() << "skipped: one GPU";
  config_.mutable_train()->set_steps(steps_ = 6);
  for (const uint32_t micro_batch : {2u, 1u}) {
    config_.mutable_train()->set_micro_batch(micro_batch);
    const Outcome gpus = TrainOnGpu({0, 1});
    ExpectClose(gpus, Train(), kLossBound);
    ExpectSameBits(gpus, TrainOnGpu({0, 1}));
  }
}

TEST_F(TrainingCudaTest, TiedHeadAndLocalSteps) {
  config_.mutable_train()->set_steps(steps_ = 6);
  config_.mutable_model()->set_tied_head(true);
  config_.mutable_sync()->set_local_steps(2);
  ExpectClose(TrainOnGpu(), Train(), kLossBound);
}

// Releases weights, and keeps gradients in the memory of a few blocks.
TEST_F(TrainingCudaTest, AWindowOfWeightsChangesNoBit) {
  config_.mutable_train()->set_steps(steps_ = 5);
  config_.mutable_train()->set_micro_batch(2);
  config_.mutable_comm()->set_sparse_embeddings(false);
  const Outcome all = TrainOnGpu();
  config_.mutable_placement()->set_kind(PlacementConfig::ZERO3);
  ExpectSameBits(all, TrainOnGpu());
}

TEST_F(TrainingCudaTest, TakesWeightsInBf16) {
  config_.mutable_train()->set_steps(steps_ = 3);
  config_.mutable_train()->set_precision(TrainConfig::BF16);
  config_.mutable_comm()->set_pull_format(CommConfig::BF16);
  const Outcome gpu = TrainOnGpu(), cpu = Train();
  for (size_t i = 0; i < gpu.losses.size(); ++i) {
    EXPECT_NEAR(gpu.losses[i] / cpu.losses[i], 1, 2e-2);
  }
}

}  // namespace
}  // namespace tug
