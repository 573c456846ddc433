#include "model/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

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
  return config;
}

TEST(GptLayout, HasParameterCountOfGpt2) {
  // GPT-2 small as published: 124,439,808 parameters.
  EXPECT_EQ(ElementCount(GptLayout(Config(12, 768, 1024, true, true), 50257)), 124439808u);
  // The model of the speed comparison, counted by PyTorch.
  EXPECT_EQ(ElementCount(GptLayout(Config(6, 384, 256, true, true), 256)), 10844160u);
}

TEST(GptLayout, OrdersBlocksForward) {
  const BlockTable table = GptLayout(Config(3, 16, 8, true, true), 11);
  ASSERT_EQ(table.blocks_size(), 5);
  EXPECT_EQ(table.blocks(0).name(), "embedding");
  EXPECT_EQ(table.blocks(1).name(), "h.0");
  EXPECT_EQ(table.blocks(3).name(), "h.2");
  EXPECT_EQ(table.blocks(4).name(), "head");
}

TEST(GptLayout, StoresDecayedMatricesFirstWithUniqueNames) {
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      std::set<std::string> names;
      const BlockTable table = GptLayout(Config(2, 16, 8, tied, bias), 11);
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

TEST(GptLayout, ScalesInitialValuesOfResidualProjectionsByDepth) {
  const BlockTable table = GptLayout(Config(8, 16, 8, true, true), 11);
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
