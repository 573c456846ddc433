// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_SPARSE_H_
#define TUG_COMPRESSION_SPARSE_SPARSE_H_

// Common parts of the codecs that send only some of the elements.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Number of elements sent at this density: rounded to nearest, at least one.
inline size_t KeptElements(double density, size_t elements) {
  const auto kept = static_cast<size_t>(std::llround(density * static_cast<double>(elements)));
  return std::clamp<size_t>(kept, 1, elements);
}

// Writes decoded elements one by one to their places in a segment; the others decode to 0.
class SparseTarget {
 public:
  SparseTarget(DecodeTo to, std::span<float> elements)
      : elements_(elements.data()), sign_(to == DecodeTo::kSubtract ? -1.0f : 1.0f) {
    if (to == DecodeTo::kStore) std::fill(elements.begin(), elements.end(), 0.0f);
  }
  // False: not finite. REQUIRES: each index at most once.
  bool Put(size_t index, float decoded) {
    elements_[index] += sign_ * decoded;
    return std::isfinite(decoded);
  }

 private:
  float* const elements_;
  const float sign_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_SPARSE_H_
