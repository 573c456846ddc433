#ifndef TUG_KERNELS_CROSS_ENTROPY_CUDA_H_
#define TUG_KERNELS_CROSS_ENTROPY_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// Those of kernels/cross_entropy.h on the GPU: the same loss, objective and gradient, in FP32. Sums
// are in a fixed order, which is not the CPU's; the bits of a row depend on that row alone. All
// pointers are to device memory. Rows of logits, and of their gradient, are `stride` elements
// apart, at least `vocab`; what lies between is neither read nor written. They return when the
// kernel is queued. Errors: those of Launch (kernels/cuda_language.h).

// Per row: loss = -log p[target], p = softmax(logits), and the gradient of the objective with
// respect to the logits, unscaled. The logits are read once, as far as a row fits into shared
// memory (58,048 of them on an H200). Fastest with a stride that is a multiple of 4.
//   logits     [rows][stride]
//   targets    [rows], each in [0, vocab) or kNoTarget: the caller has checked them
//   gradient   [rows][stride], written; T = float: may be `logits` itself
//   losses     [rows], written, in nats
//   correct    [rows], written: 1 where the largest logit (the first of equal ones) is the
//              target's, else 0; or nullptr
// T is float or Bf16.
template <typename T>
absl::Status CrossEntropy(int64_t rows, int64_t vocab, int64_t stride, const float* logits,
                          const int32_t* targets, const Objective& objective, T* gradient,
                          float* losses, uint8_t* correct, const Stream& stream);

// The losses alone, bit-equal to those of CrossEntropy, for evaluation.
absl::Status CrossEntropyLoss(int64_t rows, int64_t vocab, int64_t stride, const float* logits,
                              const int32_t* targets, float* losses, uint8_t* correct,
                              const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CROSS_ENTROPY_CUDA_H_
