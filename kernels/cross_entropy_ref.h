#ifndef TUG_KERNELS_CROSS_ENTROPY_REF_H_
#define TUG_KERNELS_CROSS_ENTROPY_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tug::kernels {

// CrossEntropy of kernels/cross_entropy.h, in the precision of T: logits become their gradient.
template <typename T>
void CrossEntropyRef(int64_t rows, int64_t vocab, T* logits, const int32_t* targets, T* losses) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = logits + r * vocab;
    const T max = *std::max_element(row, row + vocab);
    T sum = 0;
    for (int64_t j = 0; j < vocab; ++j) sum += std::exp(row[j] - max);
    losses[r] = std::log(sum) - (row[targets[r]] - max);
    for (int64_t j = 0; j < vocab; ++j) {
      row[j] = std::exp(row[j] - max) / sum - (j == targets[r] ? T(1) : T(0));
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CROSS_ENTROPY_REF_H_
