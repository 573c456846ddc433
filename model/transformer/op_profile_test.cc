// SPDX-License-Identifier: Apache-2.0
#include "model/op_profile.h"

#include <gtest/gtest.h>

#include "model/transformer/model_rig.h"

namespace tug {
namespace {

double FlopsOf(const OpProfile& profile, std::initializer_list<Op> ops) {
  double flops = 0;
  for (const Op op : ops) flops += profile.entries()[static_cast<size_t>(op)].work.flops;
  return flops;
}

TEST(OpProfile, CountsTheProductsOfAPass) {
  OpProfile profile;
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.profile = &profile;
  ModelRig rig(options);
  rig.LossAndGradient(rig.Batch());

  const double samples = options.max_micro_batch;
  const double context = options.config.context();
  double weights = 0;  // multiplied with each token
  for (const BlockSpec& block : rig.model().blocks().blocks()) {
    for (const TensorSpec& tensor : block.tensors()) {
      if (tensor.shape_size() == 2 && tensor.name() != "wpe.weight") {
        weights += static_cast<double>(ElementCount(tensor));
      }
    }
  }
  // Forward once, backward twice: y = x W; dx = dy W^T, dW = x^T dy.
  EXPECT_EQ(FlopsOf(profile, {Op::kProductForward, Op::kProductInputGradient,
                              Op::kProductWeightGradient, Op::kHeadProducts}),
            3 * 2 * weights * samples * context);
  // Causal; two products forward and five backward.
  const double pairs = context * (context + 1) / 2;
  const double product =
      2 * samples * pairs * options.config.width() * static_cast<double>(options.config.layers());
  EXPECT_EQ(FlopsOf(profile, {Op::kAttentionForward}), 2 * product);
  EXPECT_EQ(FlopsOf(profile, {Op::kAttentionBackward}), 5 * product);
}

TEST(OpProfile, CountsTheBytesOfWhatOnlyMovesMemory) {
  OpProfile profile;
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.train.set_precision(TrainConfig::BF16);
  options.profile = &profile;
  ModelRig rig(options);
  rig.LossAndGradient(rig.Batch());

  const auto bytes_of = [&](Op op) {
    return profile.entries()[static_cast<size_t>(op)].work.bytes;
  };
  const double rows = options.max_micro_batch * static_cast<double>(options.config.context());
  const double layers = options.config.layers();
  EXPECT_EQ(bytes_of(Op::kActivation), layers * 3 * rows * options.config.mlp_width() * 2);
  // FP32 logits, bf16 gradients.
  EXPECT_EQ(bytes_of(Op::kLoss), rows * kRigSymbols * (4 + 2));
  // Biases of each layer: 3 + 1 widths, one MLP width, one more width.
  EXPECT_EQ(bytes_of(Op::kBiasGradient),
            layers * rows * (5 * options.config.width() + options.config.mlp_width()) * 2);

  profile.Clear();
  EXPECT_EQ(bytes_of(Op::kLoss), 0);
}

}  // namespace
}  // namespace tug
