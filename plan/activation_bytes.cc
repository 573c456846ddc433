// SPDX-License-Identifier: Apache-2.0
#include "plan/activation_bytes.h"

#include "base/check.h"

namespace tug {

double ActivationBytes(const TransformerShape& shape, double samples, uint32_t tensor_parallel,
                       bool sequence_parallel, Recomputation recomputation) {
  TUG_CHECK(tensor_parallel >= 1);
  const auto layers = static_cast<double>(shape.layers), s = static_cast<double>(shape.context),
             h = static_cast<double>(shape.width), a = static_cast<double>(shape.heads);
  const double t = tensor_parallel;
  const double sbh = s * samples * h;
  const double cut = sequence_parallel ? t : 1;  // divides what tensor parallelism alone does not
  if (recomputation == Recomputation::kFull) return layers * 2 * sbh / cut;
  const double linear = 10 * sbh / cut + 24 * sbh / t;
  const double softmax = 5 * a * s * s * samples / t;
  return layers * (recomputation == Recomputation::kNone ? linear + softmax : linear);
}

}  // namespace tug
