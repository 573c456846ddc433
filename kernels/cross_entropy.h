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

// Per row: loss = -log p[target], p = softmax(logits), whatever the objective, and the gradient of
// the objective with respect to the logits, unscaled (the division by the number of tokens happens
// once, at the update).
//   logits     [rows][vocab]
//   targets    [rows], each in [0, vocab) or kNoTarget: the caller has checked them
//   gradient   [rows][vocab], written; T = float: may be `logits` itself
//   losses     [rows], written, in nats
//   correct    [rows], written: 1 where the largest logit (the first of equal ones) is the
//              target's, else 0; or nullptr
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
template <typename T>
void CrossEntropy(ThreadPool& pool, int64_t rows, int64_t vocab, const float* logits,
                  const int32_t* targets, const Objective& objective, T* gradient, float* losses,
                  uint8_t* correct);

// The losses alone, bit-equal to those of CrossEntropy, for evaluation.
void CrossEntropyLoss(ThreadPool& pool, int64_t rows, int64_t vocab, const float* logits,
                      const int32_t* targets, float* losses, uint8_t* correct);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_H_
