#include "model/layout.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace tug {
namespace {

constexpr float kInitStd = 0.02f;

void AddMatrix(BlockSpec& block, std::string name, uint64_t rows, uint64_t columns, float std) {
  TensorSpec& tensor = *block.add_tensors();
  tensor.set_name(std::move(name));
  tensor.add_shape(rows);
  tensor.add_shape(columns);
  tensor.set_weight_decay(true);
  tensor.set_init_std(std);
}

void AddVector(BlockSpec& block, std::string name, uint64_t size, float value) {
  TensorSpec& tensor = *block.add_tensors();
  tensor.set_name(std::move(name));
  tensor.add_shape(size);
  tensor.set_init_mean(value);
}

void AddLayer(const ModelConfig& config, uint32_t layer, BlockTable& table) {
  const uint64_t width = config.width();
  const float residual_std = static_cast<float>(kInitStd / std::sqrt(2.0 * config.layers()));
  BlockSpec& block = *table.add_blocks();
  const std::string name = "h." + std::to_string(layer);
  block.set_name(name);
  AddMatrix(block, name + ".attn.c_attn.weight", width, 3 * width, kInitStd);
  AddMatrix(block, name + ".attn.c_proj.weight", width, width, residual_std);
  AddMatrix(block, name + ".mlp.c_fc.weight", width, 4 * width, kInitStd);
  AddMatrix(block, name + ".mlp.c_proj.weight", 4 * width, width, residual_std);
  AddVector(block, name + ".ln_1.weight", width, 1.0f);
  if (config.bias()) {
    AddVector(block, name + ".ln_1.bias", width, 0.0f);
    AddVector(block, name + ".attn.c_attn.bias", 3 * width, 0.0f);
    AddVector(block, name + ".attn.c_proj.bias", width, 0.0f);
  }
  AddVector(block, name + ".ln_2.weight", width, 1.0f);
  if (config.bias()) {
    AddVector(block, name + ".ln_2.bias", width, 0.0f);
    AddVector(block, name + ".mlp.c_fc.bias", 4 * width, 0.0f);
    AddVector(block, name + ".mlp.c_proj.bias", width, 0.0f);
  }
}

}  // namespace

GptShape GptShapeOf(const ModelConfig& config, uint32_t symbols) {
  return {.layers = config.layers(),
          .width = config.width(),
          .heads = config.heads(),
          .context = config.context(),
          .symbols = std::max(symbols, config.vocabulary()),
          .tied_head = config.tied_head(),
          .bias = config.bias()};
}

BlockTable GptLayout(const ModelConfig& config, uint32_t symbols) {
  const uint64_t width = config.width();
  const auto vocabulary = static_cast<uint64_t>(GptShapeOf(config, symbols).symbols);
  BlockTable table;
  BlockSpec& embedding = *table.add_blocks();
  embedding.set_name("embedding");
  AddMatrix(embedding, "wte.weight", vocabulary, width, kInitStd);
  AddMatrix(embedding, "wpe.weight", config.context(), width, kInitStd);

  for (uint32_t layer = 0; layer < config.layers(); ++layer) AddLayer(config, layer, table);

  BlockSpec& head = *table.add_blocks();
  head.set_name("head");
  if (!config.tied_head()) AddMatrix(head, "lm_head.weight", vocabulary, width, kInitStd);
  AddVector(head, "ln_f.weight", width, 1.0f);
  if (config.bias()) AddVector(head, "ln_f.bias", width, 0.0f);
  return table;
}

uint64_t ElementCount(const TensorSpec& tensor) {
  uint64_t count = 1;
  for (const uint64_t extent : tensor.shape()) count *= extent;
  return count;
}

uint64_t ElementCount(const BlockSpec& block) {
  uint64_t count = 0;
  for (const TensorSpec& tensor : block.tensors()) count += ElementCount(tensor);
  return count;
}

uint64_t ElementCount(const BlockTable& table) {
  uint64_t count = 0;
  for (const BlockSpec& block : table.blocks()) count += ElementCount(block);
  return count;
}

}  // namespace tug
