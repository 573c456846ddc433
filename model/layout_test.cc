// SPDX-License-Identifier: Apache-2.0
#include "model/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace tug {
namespace {

ModelConfig Config(uint32_t layers, uint32_t width, uint32_t context, bool tied, bool bias) {
  ModelConfig config;
  config.set_layers(layers);
  config.set_width(width);
  config.set_heads(2);
  config.set_context(context);
  config.set_dropout(0);
  config.set_tied_head(tied);
  config.set_bias(bias);
  config.set_family(ModelConfig::DECODER);
  config.set_norm(ModelConfig::PRE);
  config.set_activation(ModelConfig::GELU);
  config.set_mlp_width(4 * width);
  return config;
}

BlockTable LayoutOf(const ModelConfig& config, uint32_t symbols) {
  return ModelLayout(config, symbols, /*classes=*/3);
}

ModelConfig WithFamily(ModelConfig config, ModelConfig::Family family,
                       ModelConfig::NormPlace norm) {
  config.set_family(family);
  config.set_norm(norm);
  return config;
}

std::vector<std::string> BlockNames(const BlockTable& table) {
  std::vector<std::string> names;
  for (const BlockSpec& block : table.blocks()) names.push_back(block.name());
  return names;
}

std::vector<std::string> TensorNames(const BlockSpec& block) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : block.tensors()) names.push_back(tensor.name());
  return names;
}

TEST(ModelLayout, HasParameterCountOfGpt2) {
  // GPT-2 small as published: 124,439,808 parameters.
  EXPECT_EQ(ElementCount(LayoutOf(Config(12, 768, 1024, true, true), 50257)), 124439808u);
  // The model of the speed comparison, counted by PyTorch.
  EXPECT_EQ(ElementCount(LayoutOf(Config(6, 384, 256, true, true), 256)), 10844160u);
}

TEST(ModelLayout, OrdersBlocksForward) {
  const BlockTable table = LayoutOf(Config(3, 16, 8, true, true), 11);
  ASSERT_EQ(table.blocks_size(), 5);
  EXPECT_EQ(table.blocks(0).name(), "embedding");
  EXPECT_EQ(table.blocks(1).name(), "h.0");
  EXPECT_EQ(table.blocks(3).name(), "h.2");
  EXPECT_EQ(table.blocks(4).name(), "head");
}

TEST(ModelLayout, GivesAnEncoderAClassifier) {
  const ModelConfig decoder = Config(1, 16, 8, true, true);
  const BlockTable post =
      LayoutOf(WithFamily(decoder, ModelConfig::ENCODER, ModelConfig::POST), 11);
  EXPECT_EQ(BlockNames(post), (std::vector<std::string>{"embedding", "h.0", "classifier"}));
  EXPECT_EQ(TensorNames(post.blocks(2)),
            (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
  EXPECT_EQ(ElementCount(post.blocks(2)), 16u * 3 + 3);
  const BlockTable pre = LayoutOf(WithFamily(decoder, ModelConfig::ENCODER, ModelConfig::PRE), 11);
  EXPECT_EQ(TensorNames(pre.blocks(2)),
            (std::vector<std::string>{"classifier.weight", "ln_f.weight", "ln_f.bias",
                                      "classifier.bias"}));
}

TEST(ModelLayout, PutsTheDecoderBehindTheEncoder) {
  const BlockTable table = LayoutOf(
      WithFamily(Config(1, 16, 8, false, false), ModelConfig::ENCODER_DECODER, ModelConfig::PRE),
      11);
  EXPECT_EQ(BlockNames(table), (std::vector<std::string>{"embedding", "h.0", "decoder.embedding",
                                                         "decoder.h.0", "head"}));
  EXPECT_EQ(TensorNames(table.blocks(2)),
            (std::vector<std::string>{"decoder.wte.weight", "decoder.wpe.weight",
                                      "decoder.ln_memory.weight"}));
  EXPECT_EQ(
      TensorNames(table.blocks(3)),
      (std::vector<std::string>{"decoder.h.0.attn.c_attn.weight", "decoder.h.0.attn.c_proj.weight",
                                "decoder.h.0.cross.c_q.weight", "decoder.h.0.cross.c_kv.weight",
                                "decoder.h.0.cross.c_proj.weight", "decoder.h.0.mlp.c_fc.weight",
                                "decoder.h.0.mlp.c_proj.weight", "decoder.h.0.ln_1.weight",
                                "decoder.h.0.ln_cross.weight", "decoder.h.0.ln_2.weight"}));
}

TEST(ModelLayout, LeavesNoBlockWithoutParameters) {
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
      const ModelConfig config = WithFamily(Config(2, 16, 8, true, false), family, norm);
      const BlockTable table = LayoutOf(config, 11);
      for (const BlockSpec& block : table.blocks()) {
        EXPECT_GT(ElementCount(block), 0u) << block.name();
      }
    }
  }
}

TEST(ModelLayout, StoresDecayedMatricesFirstWithUniqueNames) {
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      for (const auto family : {ModelConfig::DECODER, ModelConfig::ENCODER_DECODER}) {
        std::set<std::string> names;
        const BlockTable table =
            LayoutOf(WithFamily(Config(2, 16, 8, tied, bias), family, ModelConfig::PRE), 11);
        for (const BlockSpec& block : table.blocks()) {
          bool decayed = true;
          for (const TensorSpec& tensor : block.tensors()) {
            EXPECT_TRUE(names.insert(tensor.name()).second) << tensor.name();
            EXPECT_EQ(tensor.weight_decay(), tensor.shape_size() == 2) << tensor.name();
            EXPECT_TRUE(decayed || !tensor.weight_decay()) << tensor.name();
            decayed = tensor.weight_decay();
          }
        }
        EXPECT_EQ(names.count("lm_head.weight"), tied ? 0u : 1u);
        EXPECT_EQ(names.count("h.1.attn.c_attn.bias"), bias ? 1u : 0u);
        EXPECT_EQ(names.count("ln_f.bias"), bias ? 1u : 0u);
      }
    }
  }
}

TEST(ModelLayout, ScalesInitialValuesOfResidualProjectionsByDepth) {
  const BlockTable table = LayoutOf(Config(8, 16, 8, true, true), 11);
  for (const BlockSpec& block : table.blocks()) {
    for (const TensorSpec& tensor : block.tensors()) {
      const bool is_residual = tensor.name().find("c_proj.weight") != std::string::npos;
      const bool is_scale = tensor.name().find("ln_") != std::string::npos &&
                            tensor.name().find("weight") != std::string::npos;
      const float std = !tensor.weight_decay() ? 0.0f : is_residual ? 0.005f : 0.02f;
      EXPECT_FLOAT_EQ(tensor.init_std(), std) << tensor.name();
      EXPECT_EQ(tensor.init_mean(), is_scale ? 1.0f : 0.0f) << tensor.name();
    }
  }
}

}  // namespace
}  // namespace tug
