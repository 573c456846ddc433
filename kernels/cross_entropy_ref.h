#ifndef TUG_KERNELS_CROSS_ENTROPY_REF_H_
#define TUG_KERNELS_CROSS_ENTROPY_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cross_entropy.h"

namespace tug::kernels {

// CrossEntropy of kernels/cross_entropy.h, in the precision of T. Also writes objectives [rows]:
// what `gradient` is the gradient of.
template <typename T>
void CrossEntropyRef(int64_t rows, int64_t vocab, const T* logits, const int32_t* targets,
                     const Objective& objective, T* gradient, T* losses, T* objectives,
                     uint8_t* correct) {
  const T smoothing = objective.label_smoothing;
  const T z_loss = objective.z_loss;
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = logits + r * vocab;
    const int32_t target = targets[r];
    if (target == kNoTarget) {
      losses[r] = objectives[r] = 0;
      correct[r] = 0;
      std::fill(gradient + r * vocab, gradient + (r + 1) * vocab, T(0));
      continue;
    }
    const T max = *std::max_element(row, row + vocab);
    T sum = 0;
    for (int64_t j = 0; j < vocab; ++j) sum += std::exp(row[j] - max);
    const T log_sum = std::log(sum) + max;
    losses[r] = std::log(sum) - (row[target] - max);
    correct[r] = std::max_element(row, row + vocab) - row == target;
    objectives[r] = (1 - smoothing) * losses[r] + z_loss * log_sum * log_sum;
    for (int64_t j = 0; j < vocab; ++j) {
      objectives[r] += smoothing / T(vocab) * (log_sum - row[j]);
      const T p = std::exp(row[j] - max) / sum;
      const T wanted = (j == target ? 1 - smoothing : T(0)) + smoothing / T(vocab);
      gradient[r * vocab + j] = p - wanted + 2 * z_loss * log_sum * p;
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_REF_H_
