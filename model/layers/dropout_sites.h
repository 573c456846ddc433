// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_DROPOUT_SITES_H_
#define TUG_MODEL_LAYERS_DROPOUT_SITES_H_

#include <cstdint>

namespace tug {

// Numbers of the places where a model drops elements (kernels::DropoutKey::site): from 0 in the
// first stack; an encoder-decoder's decoder follows.
struct LayerSites {
  uint32_t attention = 0;  // attention weights of self-attention
  uint32_t attention_output = 0;
  uint32_t mlp_output = 0;
  uint32_t cross = 0;  // attention weights of cross-attention
  uint32_t cross_output = 0;
};

// Site of a stack's embedding. `layers`: per stack.
inline constexpr uint32_t EmbeddingSite(bool decoder_stack, int64_t layers) {
  return decoder_stack ? 1 + 3 * static_cast<uint32_t>(layers) : 0;
}

inline constexpr LayerSites SitesOfLayer(bool decoder_stack, int64_t layers, int64_t layer) {
  const uint32_t first = EmbeddingSite(decoder_stack, layers) + 1 +
                         (decoder_stack ? 5 : 3) * static_cast<uint32_t>(layer);
  return {first, first + 1, first + 2, first + 3, first + 4};
}

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_DROPOUT_SITES_H_
