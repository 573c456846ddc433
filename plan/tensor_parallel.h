// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_TENSOR_PARALLEL_H_
#define TUG_PLAN_TENSOR_PARALLEL_H_

#include <cstdint>

#include "collective/schedules/cost.h"
#include "plan/activation_bytes.h"
#include "plan/model_shape.h"

namespace tug {

// Tensor parallelism as in Megatron-LM: in a layer's MLP and in its attention the first matrix is
// cut by columns, the second by rows, so that each of the two ends with one all-reduce forward and
// one backward. A GPU has Psi / t parameters (excluding LayerNorm and some biases, which every GPU
// has completely); its activations are in plan/activation_bytes.h. Source: Shoeybi et al. 2019,
// section 3; the lectures' "Tensor Parallelism (Intra-layer)". Full recomputation repeats the
// forward pass, including its two all-reduces. With sequence parallelism each all-reduce becomes a
// reduce-scatter and an all-gather with the same bytes. Pure.
int TensorAllReducesPerLayer(Recomputation recomputation);

// Bytes that a GPU sends, and also receives, for b samples in all layers: 2 (t - 1) / t of each
// all-reduce of LayerOutputBytes. Pure. REQUIRES: t >= 1.
double TensorParallelBytes(const TransformerShape& shape, double samples, uint32_t tensor_parallel,
                           Recomputation recomputation);

// Seconds of a ring's all-reduces for b samples in all layers, none of them hidden. Pure.
double TensorParallelSeconds(const TransformerShape& shape, double samples,
                             uint32_t tensor_parallel, Recomputation recomputation,
                             const LinkCost& link);

}  // namespace tug

#endif  // TUG_PLAN_TENSOR_PARALLEL_H_
