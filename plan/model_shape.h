// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_MODEL_SHAPE_H_
#define TUG_PLAN_MODEL_SHAPE_H_

#include <cstdint>

namespace tug {

// Sizes of a transformer with one stack of layers, an MLP of 4 x width, and heads of width / heads.
// Symbols in the formulas of plan/: L layers, h width, a heads, s context, V vocabulary, Psi
// parameters.
struct TransformerShape {
  uint64_t layers = 0;
  uint64_t width = 0;
  uint64_t heads = 0;
  uint64_t context = 0;
  uint64_t vocabulary = 0;
};

// Number of parameters in the lectures ("Quantitative Analysis"):  V h + L (12 h^2 + 5 h). Excludes
// the biases of attention, LayerNorm and the positions. Pure.
uint64_t LecturesParameters(const TransformerShape& shape);

// Number of parameters of a GPT-2 of this shape, as in model/layout.h:
//   V h + s h + L (12 h^2 + 13 h) + 2 h
// Pure. REQUIRES: sizes of at most 32 bits, L at most 65536.
uint64_t DecoderParameters(const TransformerShape& shape);

// Bytes of a layer's output for b samples, in 16 bits: 2 s b h. Pure.
double LayerOutputBytes(const TransformerShape& shape, double samples);

}  // namespace tug

#endif  // TUG_PLAN_MODEL_SHAPE_H_
