#ifndef TUG_PLAN_ACTIVATION_BYTES_H_
#define TUG_PLAN_ACTIVATION_BYTES_H_

#include <cstdint>

#include "plan/model_shape.h"

namespace tug {

// What of a layer's activations the forward pass does not keep.
enum class Recomputation {
  kNone,
  kSelective,  // softmax, its dropout and attention over values are computed again
  kFull,       // all but the input of the layer
};

// Bytes of the activations of L layers in 16 bits, masks of dropout in 8, for b samples on each of
// t tensor-parallel GPUs:
//   kNone       L s b h (10 + 24 / t + 5 a s / (h t));   t = 1: L (34 s b h + 5 a s^2 b)
//   kSelective  L s b h (10 + 24 / t)
//   kFull       L 2 s b h
// With sequence parallelism what lies between the divided products is cut too, along the sequence:
//   kNone       L s b h (34 + 5 a s / h) / t
//   kSelective  L 34 s b h / t
//   kFull       L 2 s b h / t
// Embeddings and logits are not counted. What Tugboat's own model keeps: model/memory.h.
// Source: Korthikanti et al. 2022, "Reducing activation recomputation in large transformer models",
// eq. 1, 2 and 4, table 2; the lectures' "Activation is non-negligible". Pure. REQUIRES: t >= 1.
double ActivationBytes(const TransformerShape& shape, double samples, uint32_t tensor_parallel,
                       bool sequence_parallel, Recomputation recomputation);

}  // namespace tug

#endif  // TUG_PLAN_ACTIVATION_BYTES_H_
