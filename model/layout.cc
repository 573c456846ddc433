// SPDX-License-Identifier: Apache-2.0
#include "model/layout.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

constexpr float kInitStd = 0.02f;

// Adds tensors to one block; prepends the block's prefix to each name.
class BlockWriter {
 public:
  BlockWriter(BlockTable& table, std::string name, std::string prefix, bool bias)
      : block_(*table.add_blocks()), prefix_(std::move(prefix)), bias_(bias) {
    block_.set_name(std::move(name));
  }

  void Matrix(const std::string& name, int64_t rows, int64_t columns, float std = kInitStd) {
    TensorSpec& tensor = *block_.add_tensors();
    tensor.set_name(prefix_ + name + ".weight");
    tensor.add_shape(static_cast<uint64_t>(rows));
    tensor.add_shape(static_cast<uint64_t>(columns));
    tensor.set_weight_decay(true);
    tensor.set_init_std(std);
  }
  void Bias(const std::string& name, int64_t size) {
    if (bias_) Vector(name + ".bias", size, 0.0f);
  }
  void Norm(const std::string& name, int64_t size) {
    Vector(name + ".weight", size, 1.0f);
    Bias(name, size);
  }

 private:
  void Vector(const std::string& name, int64_t size, float value) {
    TensorSpec& tensor = *block_.add_tensors();
    tensor.set_name(prefix_ + name);
    tensor.add_shape(static_cast<uint64_t>(size));
    tensor.set_init_mean(value);
  }

  BlockSpec& block_;
  const std::string prefix_;
  const bool bias_;
};

void AddEmbedding(const ModelShape& shape, const std::string& prefix, bool memory_norm,
                  BlockTable& table) {
  BlockWriter block(table, prefix + "embedding", prefix, shape.bias);
  block.Matrix("wte", shape.symbols, shape.width);
  block.Matrix("wpe", shape.context, shape.width);
  if (memory_norm) block.Norm("ln_memory", shape.width);
}

void AddLayer(const ModelShape& shape, const std::string& name, bool cross, BlockTable& table) {
  const int64_t c = shape.width, m = shape.mlp_width;
  const double branches = static_cast<double>((cross ? 3 : 2) * shape.layers);
  const auto residual_std = static_cast<float>(kInitStd / std::sqrt(branches));
  BlockWriter block(table, name, name + ".", shape.bias);
  block.Matrix("attn.c_attn", c, 3 * c);
  block.Matrix("attn.c_proj", c, c, residual_std);
  if (cross) {
    block.Matrix("cross.c_q", c, c);
    block.Matrix("cross.c_kv", c, 2 * c);
    block.Matrix("cross.c_proj", c, c, residual_std);
  }
  block.Matrix("mlp.c_fc", c, m);
  block.Matrix("mlp.c_proj", m, c, residual_std);

  block.Norm("ln_1", c);
  block.Bias("attn.c_attn", 3 * c);
  block.Bias("attn.c_proj", c);
  if (cross) {
    block.Norm("ln_cross", c);
    block.Bias("cross.c_q", c);
    block.Bias("cross.c_kv", 2 * c);
    block.Bias("cross.c_proj", c);
  }
  block.Norm("ln_2", c);
  block.Bias("mlp.c_fc", m);
  block.Bias("mlp.c_proj", c);
}

void AddStack(const ModelShape& shape, const std::string& prefix, bool cross, BlockTable& table) {
  AddEmbedding(shape, prefix, /*memory_norm=*/cross && shape.pre_norm(), table);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    AddLayer(shape, prefix + "h." + std::to_string(layer), cross, table);
  }
}

void AddClassifier(const ModelShape& shape, BlockTable& table) {
  BlockWriter block(table, "classifier", "", shape.bias);
  block.Matrix("classifier", shape.width, shape.classes);
  if (shape.pre_norm()) block.Norm("ln_f", shape.width);
  block.Bias("classifier", shape.classes);
}

void AddHead(const ModelShape& shape, BlockTable& table) {
  BlockWriter block(table, "head", "", shape.bias);
  if (!shape.tied_head) block.Matrix("lm_head", shape.symbols, shape.width);
  block.Norm("ln_f", shape.width);
}

}  // namespace

ModelShape ModelShapeOf(const ModelConfig& config, uint32_t symbols, uint32_t classes) {
  TUG_CHECK(config.family() != ModelConfig::FAMILY_DEFAULT &&
            config.norm() != ModelConfig::NORM_DEFAULT &&
            config.activation() != ModelConfig::ACTIVATION_DEFAULT && config.mlp_width() > 0)
      << "all fields of a model's configuration are filled";
  const bool encoder = config.family() == ModelConfig::ENCODER;
  return {.family = config.family(),
          .norm = config.norm(),
          .activation = config.activation(),
          .layers = config.layers(),
          .width = config.width(),
          .mlp_width = config.mlp_width(),
          .heads = config.heads(),
          .context = config.context(),
          .symbols = std::max(symbols, config.vocabulary()),
          .classes = encoder ? std::max(classes, config.classes()) : 0,
          .tied_head = !encoder && config.tied_head(),
          .bias = config.bias()};
}

BlockTable ModelLayout(const ModelConfig& config, uint32_t symbols, uint32_t classes) {
  const ModelShape shape = ModelShapeOf(config, symbols, classes);
  BlockTable table;
  AddStack(shape, "", /*cross=*/false, table);
  if (shape.has_decoder_stack()) AddStack(shape, "decoder.", /*cross=*/true, table);
  if (shape.family == ModelConfig::ENCODER) {
    AddClassifier(shape, table);
  } else {
    AddHead(shape, table);
  }
  return table;
}

int TiedBlockOf(const ModelShape& shape) {
  return shape.has_decoder_stack() ? static_cast<int>(shape.layers) + 1 : 0;
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
