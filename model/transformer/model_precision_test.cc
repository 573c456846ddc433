// SPDX-License-Identifier: Apache-2.0
// bf16 against FP32, both from the same FP32 weights.
//
// Bounds: the loss, and for every gradient tensor the L2 norm of the difference relative to FP32's
// norm. A product of bf16 numbers has their rounding errors, 2^-9 each. Measured: loss 1e-3 for an
// encoder's 8 samples, else 9e-5; gradients 0.6 to 0.8% root mean square, at most 1.1%, and 2.4%
// for an encoder-decoder's cross-attention (c_q.bias, ln_cross), whose gradients are the smallest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/transformer/model_rig.h"

namespace tug {
namespace {

constexpr double kLossBound = 2e-3;
constexpr double kGradientBound = 0.03;

using Case = std::tuple<ModelConfig::Family, ModelConfig::NormPlace>;

ModelOptions Options(const Case& of) {
  const auto [family, norm] = of;
  ModelOptions options = SmallModel(family, 0.1);
  options.config.set_norm(norm);
  options.config.set_layers(3);
  options.config.set_width(96);
  options.config.set_mlp_width(384);
  options.config.set_context(64);
  options.symbols = 131;
  options.max_micro_batch = 8;
  return options;
}

class ModelPrecision : public testing::TestWithParam<Case> {};

TEST_P(ModelPrecision, Bf16StaysNearFp32InLossAndEveryGradientTensor) {
  ModelOptions options = Options(GetParam());
  ModelRig fp32(options);
  options.train.set_precision(TrainConfig::BF16);
  ModelRig bf16(options);
  fp32.ShrinkMatrices();
  bf16.ShrinkMatrices();
  const double loss = fp32.LossAndGradient(fp32.Batch()).loss;
  EXPECT_NEAR(bf16.LossAndGradient(bf16.Batch()).loss / loss, 1, kLossBound);
  std::vector<std::span<const float>> expected;
  fp32.ForEachTensor([&](const TensorSpec&, std::span<float>, std::span<const float> gradient) {
    expected.push_back(gradient);
  });
  size_t tensor_index = 0;
  double worst = 0, squares = 0;
  std::string worst_name;
  bf16.ForEachTensor(
      [&](const TensorSpec& tensor, std::span<float>, std::span<const float> gradient) {
        const double distance = Distance(gradient, expected[tensor_index++]);
        EXPECT_LE(distance, kGradientBound) << tensor.name();
        squares += distance * distance;
        if (distance <= worst) return;
        worst = distance;
        worst_name = tensor.name();
      });
  std::cout << "loss " << bf16.model().losses().loss / loss - 1 << ", gradients: worst " << worst
            << " (" << worst_name << "), root mean square "
            << std::sqrt(squares / static_cast<double>(tensor_index)) << "\n";
}

// Weights pulled as bf16 are FP32 weights, rounded. Matrices of products are then the same; tables
// and vectors are rounded too.
TEST_P(ModelPrecision, ReadsWeightsInBf16) {
  ModelOptions options = Options(GetParam());
  options.train.set_precision(TrainConfig::BF16);
  ModelRig widened(options), narrow(options);
  std::vector<std::vector<kernels::Bf16>> weights;
  for (size_t b = 0; b < widened.weights().size(); ++b) {
    std::vector<float>& block = widened.weights()[b];
    std::vector<kernels::Bf16>& rounded = weights.emplace_back(block.size());
    const auto size = static_cast<int64_t>(block.size());
    kernels::Bf16FromFloat(block.data(), rounded.data(), size);
    kernels::FloatFromBf16(rounded.data(), block.data(), size);
    narrow.model().BindWeights(static_cast<int>(b), {.bf16 = rounded});
  }
  widened.Bind();
  EXPECT_EQ(narrow.LossAndGradient(narrow.Batch()).loss,
            widened.LossAndGradient(widened.Batch()).loss);
  EXPECT_EQ(narrow.gradients(), widened.gradients());
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto [family, norm] = info.param;
  return FamilyName(family) + "_" + ModelConfig::NormPlace_Name(norm);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelPrecision,
                         testing::Combine(testing::Values(ModelConfig::DECODER,
                                                          ModelConfig::ENCODER,
                                                          ModelConfig::ENCODER_DECODER),
                                          testing::Values(ModelConfig::PRE, ModelConfig::POST)),
                         NameOf);

}  // namespace
}  // namespace tug
