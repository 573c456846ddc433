// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_ACTIVATION_BYTES_H_
#define TUG_PLAN_ACTIVATION_BYTES_H_

#include <cstdint>

#include "plan/model_shape.h"

namespace tug {

// Activations of a layer that the forward pass discards.
enum class Recomputation {
  kNone,
  kSelective,  // softmax, its dropout and attention over values are recomputed
  kFull,       // all except the layer's input
};

// Bytes of the activations of L layers in 16 bits, dropout masks in 8 bits, for b samples on each
// of t tensor-parallel GPUs:
//   kNone       L s b h (10 + 24 / t + 5 a s / (h t));   t = 1: L (34 s b h + 5 a s^2 b)
//   kSelective  L s b h (10 + 24 / t)
//   kFull       L 2 s b h
// With sequence parallelism the parts between the divided products are divided too, along the
// sequence:
//   kNone       L s b h (34 + 5 a s / h) / t
//   kSelective  L 34 s b h / t
//   kFull       L 2 s b h / t
// Excludes embeddings and logits. Tugboat's own model: model/transformer/memory.h. Source:
// Korthikanti et al. 2022, "Reducing activation recomputation in large transformer models", eq. 1,
// 2 and 4, table 2; the lectures' "Activation is non-negligible". Pure. REQUIRES: t >= 1.
double ActivationBytes(const TransformerShape& shape, double samples, uint32_t tensor_parallel,
                       bool sequence_parallel, Recomputation recomputation);

}  // namespace tug

#endif  // TUG_PLAN_ACTIVATION_BYTES_H_
