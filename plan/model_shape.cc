// SPDX-License-Identifier: Apache-2.0
#include "plan/model_shape.h"

#include "model/layout.h"

namespace tug {

uint64_t LecturesParameters(const TransformerShape& shape) {
  const uint64_t h = shape.width;
  return shape.vocabulary * h + shape.layers * (12 * h * h + 5 * h);
}

uint64_t DecoderParameters(const TransformerShape& shape) {
  ModelConfig config;
  config.set_family(ModelConfig::DECODER);
  config.set_norm(ModelConfig::PRE);
  config.set_activation(ModelConfig::GELU);
  config.set_layers(static_cast<uint32_t>(shape.layers));
  config.set_width(static_cast<uint32_t>(shape.width));
  config.set_mlp_width(static_cast<uint32_t>(4 * shape.width));
  config.set_heads(static_cast<uint32_t>(shape.heads));
  config.set_context(static_cast<uint32_t>(shape.context));
  config.set_tied_head(true);
  config.set_bias(true);
  return ElementCount(ModelLayout(config, static_cast<uint32_t>(shape.vocabulary), /*classes=*/0));
}

double LayerOutputBytes(const TransformerShape& shape, double samples) {
  return 2.0 * static_cast<double>(shape.context) * samples * static_cast<double>(shape.width);
}

}  // namespace tug
