// The training loop with a model on the GPU beside the CPU's.
//
// Bound: of a loss, in parts of it. What a pass is off by (model_cuda_test.cc: 1e-5 of a gradient
// tensor's norm) AdamW may make a whole step of where a mean square is small, and steps add up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "exchange/cuda_encoder.h"
#include "kernels/cuda_test_support.h"
#include "model/multi_gpu_model.h"
#include "proto/field_path.h"
#include "worker/encoded_gradients.h"
#include "worker/training_loop_test_support.h"

#if TUG_CUDA_EMULATED
#include "kernels/cuda_emulation_copies.h"
#include "kernels/cuda_emulation_memory.h"
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
  }

  Outcome TrainOnGpu(const std::vector<int>& gpus = {0}, bool encodes = false) {
    model_of_ = [this, gpus, encodes](TrainingRig& rig) {
      if (encodes) MakeEncoder(rig);
      auto made = NewMultiGpuModel(gpus, {.model = rig.model_options(),
                                          .bf16_weights = BindsBf16(config_),
                                          .encoder = encoder_.get()});
      TUG_CHECK_OK(made);
      return std::move(made->model);
    };
    Outcome outcome = Train();
    model_of_ = nullptr;
    encoder_.reset();
    return outcome;
  }
  void MakeEncoder(TrainingRig& rig) {
    EXPECT_TRUE(EncodesOnDevice(config_));
    std::vector<uint32_t> carried;
    for (uint32_t v = 0; v < kVirtualWorkers; ++v) carried.push_back(v);
    auto made = NewCudaEncoder({.codec = config_.comm().push_codec(),
                                .block_names = BlockNames(rig.model().blocks()),
                                .table = &rig.table(),
                                .virtual_workers = carried});
    TUG_CHECK_OK(made);
    encoder_ = *std::move(made);
  }
  // Of all steps, the farthest.
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

// Micro-batches of a sample for each, and of one that the first computes alone.
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

// Weights that are let go of, and gradients in the memory of few blocks.
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

// On the GPU or by the host: the same frames, so the same bits.
class TrainingEncodedCudaTest : public TrainingCudaTest,
                                public testing::WithParamInterface<const char*> {
 protected:
  TrainingEncodedCudaTest() {
    config_.mutable_train()->set_steps(steps_ = 5);
    PushCodecConfig& codec = *config_.mutable_comm()->mutable_push_codec();
    TUG_CHECK_OK(SetFieldFromText(config_, absl::StrCat("comm.push_codec.", GetParam()), "{}"));
    if (codec.has_top_k()) codec.mutable_top_k()->set_density(0.1);
    codec.set_error_feedback(true);
    codec.set_warmup_steps(1);
    codec.set_min_elements(64);
    codec.set_vectors(false);
    codec.set_blocks("*");
  }
  void TearDown() override { HoldCopies(false); }
  void HoldCopies(bool hold) {
#if TUG_CUDA_EMULATED
    kernels::emulation::HoldCopies(hold);
#endif
  }
  void ExpectSameEncoded() {
    HoldCopies(true);
    const Outcome gpu = TrainOnGpu({0}, /*encodes=*/true);
    HoldCopies(false);
    const Outcome host = TrainOnGpu();
    ExpectSameBits(gpu, host);
    EXPECT_GT(gpu.traffic.frames, 0u);
    EXPECT_EQ(gpu.traffic.frames, host.traffic.frames);
    EXPECT_EQ(gpu.traffic.pushed_bytes, host.traffic.pushed_bytes);
    EXPECT_EQ(gpu.held.gradients, gpu.predicted_held.gradients);
    ASSERT_FALSE(gpu.residual_squares.empty());
    EXPECT_EQ(gpu.residual_squares.front(), 0) << "a step that goes in full";
    EXPECT_GT(gpu.residual_squares.back(), 0);
  }
};

TEST_P(TrainingEncodedCudaTest, EncodesWhatTheHostWould) {
  config_.mutable_model()->set_tied_head(true);
  ExpectSameEncoded();
}

// Several segments in a push; gradients of few blocks at a time.
TEST_P(TrainingEncodedCudaTest, SoWhereGradientsAreLetGoOf) {
  config_.mutable_train()->set_micro_batch(2);
  config_.mutable_comm()->set_partition_bytes(4 * kSegment * sizeof(float));
  config_.mutable_placement()->set_kind(PlacementConfig::ZERO3);
  ExpectSameEncoded();
}

INSTANTIATE_TEST_SUITE_P(Codecs, TrainingEncodedCudaTest,
                         testing::Values("int8", "one_bit", "top_k"),
                         [](const auto& param) { return std::string(param.param); });

// What the host does to gradients it does before they are encoded.
TEST(EncodesOnDevice, WhereTheGpuHasAllThatAPushIsMadeOf) {
  JobConfig config;
  FillDefaults(config, 1);
  EXPECT_FALSE(EncodesOnDevice(config)) << "there is no codec";
  config.mutable_comm()->mutable_push_codec()->mutable_int8();
  EXPECT_TRUE(EncodesOnDevice(config));
  config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  EXPECT_FALSE(EncodesOnDevice(config));
  config.mutable_sync()->set_policy(SyncConfig::ASP);
  config.mutable_optimizer()->set_clip(OptimizerConfig::GLOBAL);
  EXPECT_FALSE(EncodesOnDevice(config));
  config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  EXPECT_TRUE(EncodesOnDevice(config));
  config.mutable_sync()->set_policy(SyncConfig::BSP);
  config.mutable_sync()->set_local_steps(2);
  EXPECT_FALSE(EncodesOnDevice(config));
  config.mutable_sync()->set_local_steps(1);
  config.mutable_comm()->mutable_push_codec()->mutable_auto_();
  EXPECT_FALSE(EncodesOnDevice(config));
}

}  // namespace
}  // namespace tug
