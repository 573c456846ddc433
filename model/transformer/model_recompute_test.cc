// SPDX-License-Identifier: Apache-2.0
// Losses and gradients have the same bits for every recomputation setting.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "model/transformer/model_rig.h"

namespace tug {
namespace {

using Case = std::tuple<ModelConfig::Family, ModelConfig::NormPlace, TrainConfig::Precision>;

class ModelRecompute : public testing::TestWithParam<Case> {};

struct Setting {
  TrainConfig::Recompute recompute;
  uint32_t layers;
};

TEST_P(ModelRecompute, NeverChangesABit) {
  const auto [family, norm, precision] = GetParam();
  for (const ModelConfig::Activation activation : {ModelConfig::GELU, ModelConfig::RELU}) {
    ModelOptions options = SmallModel(family, 0.2);
    options.config.set_norm(norm);
    options.config.set_activation(activation);
    options.config.set_layers(5);
    options.train.set_precision(precision);
    ModelRig none(options);
    const double loss = none.LossAndGradient(none.Batch()).loss;
    for (const Setting& setting :
         {Setting{TrainConfig::SELECTIVE, 1}, Setting{TrainConfig::FULL, 1},
          Setting{TrainConfig::UNIFORM, 1}, Setting{TrainConfig::UNIFORM, 2},
          Setting{TrainConfig::UNIFORM, 3}, Setting{TrainConfig::UNIFORM, 5},
          Setting{TrainConfig::BLOCK, 1}, Setting{TrainConfig::BLOCK, 3},
          Setting{TrainConfig::BLOCK, 5}}) {
      options.train.set_recompute(setting.recompute);
      options.train.set_recompute_layers(setting.layers);
      ModelRig rig(options);
      // Twice, with an evaluation in between, which overwrites the shared memory.
      for (int pass = 0; pass < 2; ++pass) {
        EXPECT_EQ(rig.LossAndGradient(rig.Batch()).loss, loss);
        EXPECT_EQ(rig.gradients(), none.gradients())
            << TrainConfig::Recompute_Name(setting.recompute) << " " << setting.layers;
        rig.EvaluationLoss();
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto [family, norm, precision] = info.param;
  return FamilyName(family) + "_" + ModelConfig::NormPlace_Name(norm) + "_" +
         TrainConfig::Precision_Name(precision);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelRecompute,
                         testing::Combine(testing::Values(ModelConfig::DECODER,
                                                          ModelConfig::ENCODER,
                                                          ModelConfig::ENCODER_DECODER),
                                          testing::Values(ModelConfig::PRE, ModelConfig::POST),
                                          testing::Values(TrainConfig::FP32, TrainConfig::BF16)),
                         NameOf);

}  // namespace
}  // namespace tug
