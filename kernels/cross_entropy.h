// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CROSS_ENTROPY_H_
#define TUG_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// Target of a row that is not counted: its loss and gradient are 0.
inline constexpr int32_t kNoTarget = -1;

// Terms of the training objective in addition to the cross-entropy:
//   (1 - label_smoothing) * -log p[target] + label_smoothing * mean_j(-log p[j])
//     + z_loss * log(sum_j exp(logit_j))^2
// Papers: Szegedy et al. 2016, section 7; Chowdhery et al. 2022 (PaLM), section 5.
struct Objective {
  float label_smoothing = 0;  // [0, 1)
  float z_loss = 0;           // >= 0
};

// T, the type of the gradient, is float or Bf16; L, that of logits and losses, is float. The
// reference has both in its own precision.
template <typename T, typename L = float>
struct CrossEntropyArgs {
  int64_t rows;
  int64_t vocab;
  int64_t stride;   // elements between the starts of adjacent rows, of logits and of the gradient
  const L* logits;  // [rows][stride], `vocab` columns are read
  const int32_t* targets;  // [rows], each in [0, vocab) or kNoTarget; the caller has checked them
  Objective objective;
  T* gradient;  // [rows][stride], `vocab` columns written; may be `logits` if T = float. nullptr:
                // only losses, for evaluation, with the same bits
  L* losses;    // [rows], written, in nats
  uint8_t* correct;  // [rows], written: 1 if the target's logit is the largest (the first among
                     // equal ones), else 0; or nullptr
};

// Per row: loss = -log p[target], p = softmax(logits), which ignores the objective; and the
// gradient of the objective with respect to the logits, unscaled (the update divides by the number
// of tokens). The bits of a row depend on that row alone. Thread-safe for calls with different
// pools.
template <typename T>
void CrossEntropy(ThreadPool& pool, const CrossEntropyArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_H_
