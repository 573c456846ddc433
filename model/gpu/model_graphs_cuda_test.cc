// SPDX-License-Identifier: Apache-2.0
// A model whose passes are CUDA graphs computes the same bits as one whose operations are queued
// one by one, whatever changes from pass to pass (model/backend/pass_graphs.h).
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/device/device.h"
#include "model/gpu/cuda_model_rig.h"
#include "model/transformer/model_rig.h"

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
  options.config.set_layers(2);
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

  // Runs `f` on both models and expects equal results.
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
  for (params.t = 1; params.t <= 3; ++params.t) {
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
  // With each argument, all passes except the first.
  const auto blocks = static_cast<uint64_t>(graphs_->model().num_blocks());
  EXPECT_GE(launches(), 2 * (3 * (2 * blocks - 2)));
  EXPECT_EQ(one_by_one_->device().graph_launches(), 0u);
  Both([](CudaModelRig& gpu) { return std::pair(gpu.model().Synchronize().ok(), gpu.weights()); });
}

// Steps of dropout are arguments; blocks without dropout still become graphs.
TEST_P(ModelGraphsCuda, TheStepOfDropout) {
  MicroBatch batch = cpu_->Batch();
  for (uint32_t step = 1; step <= 3; ++step) {
    batch.dropout.step = step;
    Train(batch);
  }
  batch.dropout.step = 2;
  Train(batch);
}

// Weights of all blocks, in separate memory.
template <typename W>
class Weights {
 public:
  Weights(CudaModelRig& gpu, const std::vector<std::vector<W>>& values) : model_(gpu.model()) {
    for (const auto& block : values) {
      memory_.push_back(gpu.OnGpu(block));
      sizes_.push_back(block.size());
    }
  }
  void Bind() {
    for (size_t b = 0; b < memory_.size(); ++b) {
      model_.BindWeights(static_cast<int>(b), ViewOf(memory_[b].As<W>(), sizes_[b]));
    }
  }

 private:
  Model& model_;
  std::vector<DeviceBuffer> memory_;
  std::vector<size_t> sizes_;
};

// Weights are bound to alternating memory, with other values; with BF16 also as bf16, which is read
// in place; and released.
TEST_P(ModelGraphsCuda, WeightsInOtherMemory) {
  const MicroBatch batch = cpu_->Batch();
  std::vector<std::vector<float>> smaller = cpu_->weights();
  std::vector<std::vector<Bf16>> rounded;
  for (auto& block : smaller) {
    for (float& w : block) w *= 0.75f;
    kernels::Bf16FromFloat(block.data(), rounded.emplace_back(block.size()).data(),
                           static_cast<int64_t>(block.size()));
  }
  const bool bf16 = GetParam().precision == TrainConfig::BF16;
  std::vector<Weights<float>> here, there;
  std::vector<Weights<Bf16>> narrow;
  for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) {
    here.emplace_back(*gpu, cpu_->weights());
    there.emplace_back(*gpu, smaller);
    if (bf16) narrow.emplace_back(*gpu, rounded);
  }
  const auto train_with = [&](auto& weights, int passes) {
    for (auto& of : weights) of.Bind();
    for (int i = 0; i < passes; ++i) Train(batch);
  };
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    const int passes = round == 0 ? 2 : 1;
    train_with(here, passes);
    // Passes that are not graphs yet, after some that are.
    if (round > 0) Both([](CudaModelRig& gpu) { return gpu.EvaluationLosses().loss; });
    train_with(there, passes);
    if (bf16) train_with(narrow, passes);
    if (round != 2) continue;
    EXPECT_GT(launches(), 0u);
    for (int i = 0; i < 3 && bf16; ++i) train_with(narrow, 1);
    for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) {
      for (int b = 0; b < gpu->model().num_blocks(); ++b) gpu->model().ReleaseWeights(b);
    }
    if (bf16) train_with(narrow, 1);
  }
}

// Rebinds the weights of one block, the tied one if there is one: to the head they are only
// arguments of products. Then rebinds gradients.
TEST_P(ModelGraphsCuda, RebindsWeightsAndGradientOfOneBlock) {
  const MicroBatch batch = cpu_->Batch();
  for (int i = 0; i < 2; ++i) Train(batch);
  std::vector<DeviceBuffer> memory;
  for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) {
    Model& model = gpu->model();
    const int block = model.tied_block().value_or(1);
    std::vector<float> weights = cpu_->weights()[static_cast<size_t>(block)];
    for (float& w : weights) w *= 0.75f;
    memory.push_back(gpu->OnGpu(weights));
    model.BindWeights(block, ViewOf(memory.back().As<float>(), weights.size()));
  }
  for (int i = 0; i < 2; ++i) Train(batch);
  for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) {
    const DeviceBuffer& gradient = gpu->gradient(1);
    memory.push_back(gpu->OnGpu(std::vector<float>(CudaModelRig::Floats(gradient).size())));
    gpu->model().BindGradient(1, CudaModelRig::Floats(memory.back()));
  }
  for (int i = 0; i < 2; ++i) {
    for (CudaModelRig* gpu : {graphs_.get(), one_by_one_.get()}) gpu->LossAndGradient(batch);
  }
  std::vector<std::vector<float>> made;
  for (size_t i = 2; i < 4; ++i) {
    auto& values = made.emplace_back(CudaModelRig::Floats(memory[i]).size());
    const auto& stream = (i == 2 ? graphs_ : one_by_one_)->stream();
    EXPECT_TRUE(kernels::cuda::CopyToHostAsync(values.data(), memory[i].data(),
                                               memory[i].size_bytes(), stream)
                    .ok());
    EXPECT_TRUE(stream.Synchronize().ok());
  }
  EXPECT_EQ(made[0], made[1]);
}

// As with a server that lets workers run ahead: the next forward pass uses the weights that a
// backward pass bound and copied, and binds none.
TEST_P(ModelGraphsCuda, WeightsBoundBetweenForwardAndBackward) {
  const MicroBatch batch = cpu_->Batch();
  for (int i = 0; i < 3; ++i) Train(batch);
  for (int step = 1; step <= 2; ++step) {
    Both([&](CudaModelRig& gpu) {
      RunForward(gpu.model(), batch);
      gpu.AdamWStep({.lr = 0.01f, .eps = 0.01f, .t = step});
      for (int b = gpu.model().num_blocks() - 1; b >= 0; --b) gpu.model().Backward(b);
      return gpu.gradients();
    });
    Train(batch);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"decoder"},
      {"decoder_bf16", ModelConfig::DECODER, TrainConfig::BF16, TrainConfig::NONE, 0.2},
      {"decoder_full", ModelConfig::DECODER, TrainConfig::BF16, TrainConfig::FULL},
      {"encoder_selective", ModelConfig::ENCODER, TrainConfig::FP32, TrainConfig::SELECTIVE, 0.1},
      {"encoder_decoder_uniform", ModelConfig::ENCODER_DECODER, TrainConfig::FP32,
       TrainConfig::UNIFORM}};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  cases.resize(1);  // emulated memory checks are slow
#endif
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGraphsCuda, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace tug
