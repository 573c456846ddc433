// SPDX-License-Identifier: Apache-2.0
// Gradients of every tensor against the slope of the loss, for the three families, norms before and
// after, both activations.
//
// Measured: within 6e-5, and 4e-4 for the tensors with the smallest gradients; the error is the
// rounding of FP32 losses, relatively about 1e-7, over a step of 0.02. (model_fixture_test.cc
// compares gradients with PyTorch's to seven digits.)
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

struct Precision {
  double step;
  double bound;
};
constexpr Precision kSmooth = {0.02, 4e-3}, kCorners = {2e-3, 6e-2};

// Derivative of the loss along a tensor's own gradient, by fourth-order central differences,
// relative to the gradient's norm, which it should equal: so 1 is correct.
double DerivativeAlongGradient(ModelRig& rig, std::span<float> weights,
                               std::span<const float> gradient, double h) {
  const std::vector<float> saved(weights.begin(), weights.end());
  const double norm = Norm2(gradient);
  const auto loss_at = [&](double distance) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(saved[i] + distance * gradient[i] / norm);
    }
    return rig.TrainingLoss(rig.Batch());
  };
  const double derivative =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  std::ranges::copy(saved, weights.begin());
  return derivative / norm;
}

using Case = std::tuple<ModelConfig::Family, ModelConfig::NormPlace, ModelConfig::Activation,
                        double /*dropout*/, bool /*tied*/>;

class ModelGradient : public testing::TestWithParam<Case> {};

TEST_P(ModelGradient, GradientOfEveryTensorIsSlopeOfLoss) {
  const auto [family, norm, activation, dropout, tied] = GetParam();
  ModelOptions options = SmallModel(family, dropout);
  options.config.set_norm(norm);
  options.config.set_activation(activation);
  options.config.set_tied_head(tied);
  const Precision precision = activation == ModelConfig::RELU ? kCorners : kSmooth;
  ModelRig rig(options), moved(options);
  rig.LossAndGradient(rig.Batch());
  std::vector<double> slopes;
  std::vector<std::span<const float>> gradients;
  rig.ForEachTensor([&](const TensorSpec&, std::span<float>, std::span<const float> gradient) {
    gradients.push_back(gradient);
  });
  size_t tensor_index = 0;
  double worst = 0;
  moved.ForEachTensor(
      [&](const TensorSpec& tensor, std::span<float> weights, std::span<const float>) {
        const std::span<const float> gradient = gradients[tensor_index++];
        const double slope = DerivativeAlongGradient(moved, weights, gradient, precision.step);
        EXPECT_NEAR(slope, 1, precision.bound) << tensor.name();
        worst = std::max(worst, std::abs(slope - 1));
      });
  std::cout << "worst " << worst << "\n";
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto [family, norm, activation, dropout, tied] = info.param;
  return FamilyName(family) + "_" + ModelConfig::NormPlace_Name(norm) + "_" +
         ModelConfig::Activation_Name(activation) + (dropout > 0 ? "_dropout" : "") +
         (tied ? "_tied" : "");
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
      for (const double dropout : {0.0, 0.25}) {
        for (const bool tied : {false, true}) {
          if (tied && family == ModelConfig::ENCODER) continue;
          cases.emplace_back(family, norm, ModelConfig::GELU, dropout, tied);
        }
      }
      cases.emplace_back(family, norm, ModelConfig::RELU, 0.25, false);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelGradient, testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace tug
