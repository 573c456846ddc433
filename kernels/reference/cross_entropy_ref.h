// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_CROSS_ENTROPY_REF_H_
#define TUG_KERNELS_REFERENCE_CROSS_ENTROPY_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cross_entropy.h"

namespace tug::kernels {

// CrossEntropy of kernels/cross_entropy.h, in the precision of T. Also writes objectives [rows],
// the function that `gradient` differentiates.
template <typename T>
void CrossEntropyRef(const CrossEntropyArgs<T, T>& a, T* objectives) {
  const T smoothing = a.objective.label_smoothing;
  const T z_loss = a.objective.z_loss;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* row = a.logits + r * a.stride;
    T* const gradient = a.gradient + r * a.stride;
    const int32_t target = a.targets[r];
    if (target == kNoTarget) {
      a.losses[r] = objectives[r] = 0;
      a.correct[r] = 0;
      std::fill_n(gradient, a.vocab, T(0));
      continue;
    }
    const T max = *std::max_element(row, row + a.vocab);
    T sum = 0;
    for (int64_t j = 0; j < a.vocab; ++j) sum += std::exp(row[j] - max);
    const T log_sum = std::log(sum) + max;
    a.losses[r] = std::log(sum) - (row[target] - max);
    a.correct[r] = std::max_element(row, row + a.vocab) - row == target;
    objectives[r] = (1 - smoothing) * a.losses[r] + z_loss * log_sum * log_sum;
    for (int64_t j = 0; j < a.vocab; ++j) {
      objectives[r] += smoothing / T(a.vocab) * (log_sum - row[j]);
      const T p = std::exp(row[j] - max) / sum;
      const T wanted = (j == target ? 1 - smoothing : T(0)) + smoothing / T(a.vocab);
      gradient[j] = p - wanted + 2 * z_loss * log_sum * p;
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_CROSS_ENTROPY_REF_H_
