// Gradients of every tensor against the slope of the loss, for the three families, norms before and
// behind, both activations.
//
// Measured: within 6e-5, and 4e-4 for the tensors with the least gradient; the rest is the rounding
// of FP32 losses, about 1e-7 of them, over a step of 0.02. (model_fixture_test.cc compares gradients
// with PyTorch's to seven digits.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/model_rig.h"

namespace tug {
namespace {

constexpr double kBound = 1e-3;

// The derivative of the loss along a tensor's own gradient, by central differences of fourth order,
// in parts of the gradient's norm, which it should equal: so 1 where all is right.
double DerivativeAlongGradient(ModelRig& rig, std::span<float> weights,
                               std::span<const float> gradient, double h) {
  const std::vector<float> saved(weights.begin(), weights.end());
  const double norm = Norm2(gradient);
  const auto loss_at = [&](double distance) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(saved[i] + distance * gradient[i] / norm);
    }
    ModelRig* const r = &rig;
    return r->TrainingLoss(r->Batch());
  };
  const double derivative =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  std::ranges::copy(saved, weights.begin());
  return derivative / norm;
}

using Case = std::tuple<ModelConfig::Family, ModelConfig::NormPlace, ModelConfig::Activation,
                        double /*dropout*/, bool /*tied*/>;

class ModelGradient : public testing::TestWithParam<Case> {};

TEST_P(ModelGradient, OfEveryTensorIsTheSlopeOfTheLoss) {
  const auto [family, norm, activation, dropout, tied] = GetParam();
  ModelOptions options = SmallModel(family, dropout);
  options.config.set_norm(norm);
  options.config.set_activation(activation);
  options.config.set_tied_head(tied);
  ModelRig rig(options), moved(options);
  rig.LossAndGradient(rig.Batch());
  std::vector<double> slopes;
  std::vector<std::span<const float>> gradients;
  rig.ForEachTensor([&](const TensorSpec&, std::span<float>, std::span<const float> gradient) {
    gradients.push_back(gradient);
  });
  size_t tensor_index = 0;
  double worst = 0;
  moved.ForEachTensor([&](const TensorSpec& tensor, std::span<float> weights,
                          std::span<const float>) {
    const std::span<const float> gradient = gradients[tensor_index++];
    // ReLU has corners: a shorter step crosses fewer of them.
    const double h = activation == ModelConfig::RELU ? 2e-3 : 0.02;
    const double slope = DerivativeAlongGradient(moved, weights, gradient, h);
    EXPECT_NEAR(slope, 1, activation == ModelConfig::RELU ? 10 * kBound : kBound) << tensor.name();
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

INSTANTIATE_TEST_SUITE_P(
    Shapes, ModelGradient,
    testing::Combine(testing::Values(ModelConfig::DECODER, ModelConfig::ENCODER,
                                     ModelConfig::ENCODER_DECODER),
                     testing::Values(ModelConfig::PRE, ModelConfig::POST),
                     testing::Values(ModelConfig::GELU, ModelConfig::RELU),
                     testing::Values(0.0, 0.25), testing::Bool()),
    NameOf);

}  // namespace
}  // namespace tug
