#ifndef TUG_KERNELS_CROSS_ENTROPY_H_
#define TUG_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// A target that does not count: loss and gradient of its row are 0.
inline constexpr int32_t kNoTarget = -1;

// What is trained for, beside the cross-entropy itself:
//   (1 - label_smoothing) * -log p[target] + label_smoothing * mean_j(-log p[j])
//     + z_loss * log(sum_j exp(logit_j))^2
// Papers: Szegedy et al. 2016, section 7; Chowdhery et al. 2022 (PaLM), section 5.
struct Objective {
  float label_smoothing = 0;  // [0, 1)
  float z_loss = 0;           // >= 0
};

// T, of the gradient, is float or Bf16; L, of logits and losses, is float. The reference has both
// in its own precision.
template <typename T, typename L = float>
struct CrossEntropyArgs {
  int64_t rows;
  int64_t vocab;
  int64_t stride;          // elements from one row of logits, or of the gradient, to the next
  const L* logits;         // [rows][stride], of which `vocab` columns are read
  const int32_t* targets;  // [rows], each in [0, vocab) or kNoTarget: the caller has checked them
  Objective objective;
  T* gradient;  // [rows][stride], `vocab` columns written; T = float: may be `logits`; nullptr:
                // the losses alone, for evaluation, with the same bits
  L* losses;    // [rows], written, in nats
  uint8_t* correct;  // [rows], written: 1 where the largest logit (the first of equal ones) is the
                     // target's, else 0; or nullptr
};

// Per row: loss = -log p[target], p = softmax(logits), whatever the objective, and the gradient of
// the objective with respect to the logits, unscaled (the division by the number of tokens happens
// once, at the update).
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
template <typename T>
void CrossEntropy(ThreadPool& pool, const CrossEntropyArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_H_
