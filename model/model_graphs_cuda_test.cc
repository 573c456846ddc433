// A model whose passes are CUDA graphs computes the bits of one whose operations are queued each by
// itself: whatever changes from pass to pass (model/pass_graphs.h).
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda_test_support.h"
#include "kernels/device.h"
#include "model/cuda_model_rig.h"
#include "model/model_rig.h"

namespace tug {
namespace {

using kernels::Bf16;
using kernels::cuda::DeviceBuffer;

struct Case {
  std::string name;
  ModelConfig::Family family = ModelConfig::DECODER;
  TrainConfig::Precision precision = TrainConfig::FP32;
  TrainConfig::Recompute recompute = TrainConfig::NONE;
  double dropout = 0;
};

ModelOptions OptionsOf(const Case& of) {
  ModelOptions options = SmallModel(of.family, of.dropout);
  options.config.set_layers(3);
  options.config.set_tied_head(true);
  options.train.set_precision(of.precision);
  options.train.set_recompute(of.recompute);
  options.train.set_recompute_layers(2);
  return options;
}

WeightsView ViewOf(const float* data, size_t size) { return {.fp32 = {data, size}}; }
WeightsView ViewOf(const Bf16* data, size_t size) { return {.bf16 = {data, size}}; }

class ModelGraphsCuda : public kernels::cuda::CudaTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    cpu_ = std::make_unique<ModelRig>(OptionsOf(GetParam()));
    cpu_->ShrinkMatrices();
    one_by_one_ = std::make_unique<CudaModelRig>(*cpu_, GraphUse::kNever);
    graphs_ = std::make_unique<CudaModelRig>(*cpu_, GraphUse::kAlways);
  }
  void TearDown() override {
    graphs_.reset();
    one_by_one_.reset();
    CudaTest::TearDown();
  }

  // Of both, with the same bits.
  template <typename F>
  void Both(F f) {
    EXPECT_EQ(f(*graphs_), f(*one_by_one_));
    EXPECT_TRUE(graphs_->model().status().ok()) << graphs_->model().status();
  }
  void Train(const MicroBatch& batch) {
    Both([&](CudaModelRig& gpu) {
      const double loss = gpu.LossAndGradient(batch).loss;
      return std::pair(loss, gpu.gradients());
    });
  }
  uint64_t launches() const { return graphs_->device().graph_launches(); }

  std::unique_ptr<ModelRig> cpu_;
  std::unique_ptr<CudaModelRig> one_by_one_, graphs_;
};

TEST_P(ModelGraphsCuda, StepsEvaluationsAndMicroBatches) {
  kernels::AdamWParams params = {.lr = 0.01f, .eps = 0.01f};
  MicroBatch first = cpu_->Batch(0, 1), second = cpu_->Batch(1, 2), whole = cpu_->Batch();
  second.accumulate = true;
  for (params.t = 1; params.t <= 4; ++params.t) {
    SCOPED_TRACE(params.t);
    Train(whole);
    Both([&](CudaModelRig& gpu) {
      gpu.AdamWStep(params);
      return gpu.weights();
    });
    Both([](CudaModelRig& gpu) { return gpu.EvaluationLosses().loss; });
    Train(first);
    Train(second);
  }
  // All passes but the first with each argument.
  const auto blocks = static_cast<uint64_t>(graphs_->model().num_blocks());
  EXPECT_GE(launches(), 3 * (3 * (2 * blocks - 2)));
  EXPECT_EQ(one_by_one_->device().graph_launches(), 0u);
  Both([](CudaModelRig& gpu) { return std::pair(gpu.model().Synchronize().ok(), gpu.weights()); });
}

// Steps of dropout are arguments; blocks without it are graphs all the same.
TEST_P(ModelGraphsCuda, TheStepOfDropout) {
  MicroBatch batch = cpu_->Batch();
  for (uint32_t step = 1; step <= 3; ++step) {
    batch.dropout.step = step;
    Train(batch);
  }
  batch.dropout.step = 2;
  Train(batch);
}

// Bound now here, now there, with other values; then as bf16, and as floats again; and released.
TEST_P(ModelGraphsCuda, WeightsInOtherMemory) {
  const MicroBatch batch = cpu_->Batch();
  std::vector<std::vector<float>> other = cpu_->weights();
  for (auto& block : other) {
    for (float& w : block) w *= 0.75f;
  }
  std::vector<std::vector<Bf16>> rounded;
  for (const auto& block : other) {
    kernels::Bf16FromFloat(block.data(), rounded.emplace_back(block.size()).data(),
                           static_cast<int64_t>(block.size()));
  }
  const bool bf16 = GetParam().precision == TrainConfig::BF16;
  std::vector<DeviceBuffer> memory;
  const auto bind = [&](CudaModelRig& gpu, const auto& weights) {
    for (size_t b = 0; b < weights.size(); ++b) {
      memory.push_back(gpu.OnGpu(weights[b]));
      const auto* const data =
          memory.back().As<typename std::decay_t<decltype(weights[b])>::value_type>();
      gpu.model().BindWeights(static_cast<int>(b), ViewOf(data, weights[b].size()));
    }
  };
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) bind(*gpu, other);
    Train(batch);
    Train(batch);
    if (bf16) {
      for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) bind(*gpu, rounded);
      Train(batch);
      Train(batch);
    }
    for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) {
      if (round == 1) {
        for (int b = 0; b < gpu->model().num_blocks(); ++b) gpu->model().ReleaseWeights(b);
      }
      bind(*gpu, cpu_->weights());
    }
    Train(batch);
    Train(batch);
  }
  EXPECT_GT(launches(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGraphsCuda,
                         testing::Values(Case{"decoder"},
                                         Case{"decoder_bf16", ModelConfig::DECODER,
                                              TrainConfig::BF16, TrainConfig::NONE, 0.2},
                                         Case{"decoder_full", ModelConfig::DECODER,
                                              TrainConfig::BF16, TrainConfig::FULL},
                                         Case{"encoder_selective", ModelConfig::ENCODER,
                                              TrainConfig::FP32, TrainConfig::SELECTIVE, 0.1},
                                         Case{"encoder_decoder_uniform",
                                              ModelConfig::ENCODER_DECODER, TrainConfig::FP32,
                                              TrainConfig::UNIFORM}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace tug
