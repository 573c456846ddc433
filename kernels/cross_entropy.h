#ifndef TUG_KERNELS_CROSS_ENTROPY_H_
#define TUG_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// Per row: loss = -log softmax(logits)[target], and its gradient in place of the logits:
// softmax(logits) - onehot(target), unscaled (the division by the number of tokens happens once, at
// the update).
//   logits    [rows][vocab], in: logits; out: their gradient
//   targets   [rows], each in [0, vocab): the caller has checked them
//   losses    [rows], written, in nats
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
void CrossEntropy(ThreadPool& pool, int64_t rows, int64_t vocab, float* logits,
                  const int32_t* targets, float* losses);

// The losses alone, bit-equal to those of CrossEntropy, for evaluation.
void CrossEntropyLoss(ThreadPool& pool, int64_t rows, int64_t vocab, const float* logits,
                      const int32_t* targets, float* losses);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_H_
