// SPDX-License-Identifier: Apache-2.0
#include "plan/tensor_parallel.h"

#include <cmath>

#include "base/check.h"
#include "collective/schedules/ring.h"

namespace tug {

int TensorAllReducesPerLayer(Recomputation recomputation) {
  return recomputation == Recomputation::kFull ? 6 : 4;
}

double TensorParallelBytes(const TransformerShape& shape, double samples, uint32_t tensor_parallel,
                           Recomputation recomputation) {
  TUG_CHECK(tensor_parallel >= 1);
  const double t = tensor_parallel;
  return static_cast<double>(shape.layers) * TensorAllReducesPerLayer(recomputation) * 2 * (t - 1) /
         t * LayerOutputBytes(shape, samples);
}

double TensorParallelSeconds(const TransformerShape& shape, double samples,
                             uint32_t tensor_parallel, Recomputation recomputation,
                             const LinkCost& link) {
  const auto bytes = static_cast<uint64_t>(std::llround(LayerOutputBytes(shape, samples)));
  return static_cast<double>(shape.layers) * TensorAllReducesPerLayer(recomputation) *
         RingAllReduceSeconds(link, tensor_parallel, bytes);
}

}  // namespace tug
