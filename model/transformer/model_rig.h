// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_MODEL_RIG_H_
#define TUG_MODEL_TRANSFORMER_MODEL_RIG_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "kernels/cross_entropy.h"
#include "model/layout.h"
#include "model/model.h"
#include "model/transformer/create_model.h"

namespace tug {

// For tests: small models of every family.

inline constexpr uint32_t kRigSeed = 7;
inline constexpr uint32_t kRigSymbols = 19;
inline constexpr uint32_t kRigClasses = 5;

// All fields filled, except those a test sets itself. PRE, GELU, tied, biases, no dropout.
inline ModelOptions SmallModel(ModelConfig::Family family, double dropout = 0) {
  ModelOptions options;
  ModelConfig& config = options.config;
  config.set_family(family);
  config.set_norm(ModelConfig::PRE);
  config.set_activation(ModelConfig::GELU);
  config.set_layers(2);
  config.set_width(24);
  config.set_mlp_width(56);
  config.set_heads(3);
  config.set_context(10);
  config.set_dropout(dropout);
  config.set_tied_head(true);
  config.set_bias(true);
  options.train.set_precision(TrainConfig::FP32);
  options.train.set_recompute(TrainConfig::NONE);
  options.symbols = kRigSymbols;
  options.classes = family == ModelConfig::ENCODER ? kRigClasses : 0;
  options.max_micro_batch = 3;
  return options;
}

inline std::string FamilyName(ModelConfig::Family family) {
  return ModelConfig::Family_Name(family);
}

// Runs all blocks forward.
inline void RunForward(Model& model, const MicroBatch& batch) {
  model.Start(batch);
  for (int b = 0; b < model.num_blocks(); ++b) model.Forward(b);
}

// Runs all blocks forward and backward; returns the losses.
inline LossSums RunPass(Model& model, const MicroBatch& batch) {
  RunForward(model, batch);
  for (int b = model.num_blocks() - 1; b >= 0; --b) model.Backward(b);
  return model.losses();
}

// A model with weights, gradients and a batch of max_micro_batch samples, all from one seed: equal
// for models that differ only in precision or recomputation.
class ModelRig {
 public:
  explicit ModelRig(const ModelOptions& options, int threads = 1)
      : options_(options), context_(options.config.context()), pool_(threads) {
    Make(CreateModel(options, pool_));
  }
  // `device` must use host memory and outlive the rig.
  ModelRig(const ModelOptions& options, ComputeDevice& device)
      : options_(options), context_(options.config.context()), pool_(1) {
    Make(CreateModel(options, device));
  }

  void Bind() {
    for (int b = 0; b < model_->num_blocks(); ++b) {
      model_->BindWeights(b, {.fp32 = weights_[static_cast<size_t>(b)]});
      model_->BindGradient(b, gradients_[static_cast<size_t>(b)]);
    }
  }

  // Samples [first, first + count) of the batch; dropout numbers them accordingly.
  MicroBatch Batch(int first, int count, bool training = true) const {
    const auto part = [&](const std::vector<int32_t>& values, int64_t of_sample) {
      if (values.empty()) return std::span<const int32_t>();
      return std::span(values).subspan(static_cast<size_t>(first * of_sample),
                                       static_cast<size_t>(count * of_sample));
    };
    MicroBatch batch;
    batch.samples = count;
    batch.tokens = part(tokens_, context_);
    batch.lengths = part(lengths_, 1);
    batch.decoder_tokens = part(decoder_tokens_, context_);
    batch.targets = part(targets_, is_encoder() ? 1 : context_);
    batch.training = training;
    batch.dropout = {.seed = kRigSeed, .step = 3, .first_sample = static_cast<uint32_t>(first)};
    return batch;
  }
  MicroBatch Batch(bool training = true) const {
    return Batch(0, options_.max_micro_batch, training);
  }

  void Forward(const MicroBatch& batch) { RunForward(*model_, batch); }
  LossSums LossAndGradient(const MicroBatch& batch) { return RunPass(*model_, batch); }
  double TrainingLoss(const MicroBatch& batch) {
    Forward(batch);
    model_->Backward(model_->num_blocks() - 1);
    return model_->losses().loss;
  }
  double EvaluationLoss() {
    Forward(Batch(/*training=*/false));
    return model_->losses().loss;
  }

  Model& model() { return *model_; }
  const ModelOptions& options() const { return options_; }
  std::vector<std::vector<float>>& weights() { return weights_; }
  const std::vector<std::vector<float>>& gradients() const { return gradients_; }
  std::vector<int32_t>& lengths() { return lengths_; }
  std::vector<int32_t>& tokens() { return tokens_; }
  std::vector<int32_t>& targets() { return targets_; }

  // Scales weights to a usual size. With the wide ones, attention picks single tokens, and a
  // rounding may change the pick.
  void ShrinkMatrices() {
    ForEachTensor([](const TensorSpec& tensor, std::span<float> weights, std::span<const float>) {
      if (tensor.shape_size() != 2) return;
      for (float& weight : weights) weight *= 0.3f;
    });
    Bind();
  }

  // Calls f(tensor, its weights, its gradient) for every tensor.
  template <typename F>
  void ForEachTensor(F f) {
    for (size_t b = 0; b < weights_.size(); ++b) {
      size_t offset = 0;
      for (const TensorSpec& tensor : model_->blocks().blocks(static_cast<int>(b)).tensors()) {
        const size_t size = ElementCount(tensor);
        f(tensor, std::span(weights_[b]).subspan(offset, size),
          std::span<const float>(gradients_[b]).subspan(offset, size));
        offset += size;
      }
    }
  }

 private:
  void Make(absl::StatusOr<std::unique_ptr<Model>> model) {
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    std::mt19937 random(kRigSeed);
    std::normal_distribution<float> normal;
    for (const BlockSpec& block : model_->blocks().blocks()) {
      std::vector<float>& weights = weights_.emplace_back();
      for (const TensorSpec& tensor : block.tensors()) {
        for (uint64_t i = 0; i < ElementCount(tensor); ++i) {
          weights.push_back(tensor.init_mean() + 0.2f * normal(random));
        }
      }
      gradients_.emplace_back(weights.size(), std::nanf(""));
    }
    Bind();
    MakeBatch();
  }

  bool is_encoder() const { return options_.config.family() == ModelConfig::ENCODER; }

  // Adds padding if the family supports it; one target in five does not count.
  void MakeBatch() {
    std::mt19937 random(kRigSeed + 1);
    const int samples = options_.max_micro_batch;
    const auto draw = [&](int64_t count, uint32_t end) {
      std::uniform_int_distribution<int32_t> distribution(0, static_cast<int32_t>(end) - 1);
      std::vector<int32_t> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(distribution(random));
      return values;
    };
    tokens_ = draw(samples * context_, options_.symbols);
    targets_ =
        is_encoder() ? draw(samples, options_.classes) : draw(samples * context_, options_.symbols);
    if (options_.config.family() == ModelConfig::DECODER) return;
    lengths_ = draw(samples, static_cast<uint32_t>(context_));
    for (int32_t& length : lengths_) ++length;
    if (is_encoder()) return;
    decoder_tokens_ = draw(samples * context_, options_.symbols);
    for (size_t i = 0; i < targets_.size(); i += 5) targets_[i] = kernels::kNoTarget;
  }

  const ModelOptions options_;
  const int64_t context_;
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  std::vector<std::vector<float>> weights_, gradients_;  // by block
  std::vector<int32_t> tokens_, lengths_, decoder_tokens_, targets_;
};

inline double Norm2(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

// |a - b| / |b|, L2 norms over all elements.
inline double Distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(difference) / Norm2(b);
}

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_MODEL_RIG_H_
