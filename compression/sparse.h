#ifndef TUG_COMPRESSION_SPARSE_H_
#define TUG_COMPRESSION_SPARSE_H_

// What the codecs that send some of the elements have in common.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// How many of so many elements are sent: the nearest to that part of them, at least one.
inline size_t KeptElements(double density, size_t elements) {
  const auto kept = static_cast<size_t>(std::llround(density * static_cast<double>(elements)));
  return std::clamp<size_t>(kept, 1, elements);
}

// Puts decoded elements one by one to their places in a segment; the others decode to 0.
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

#endif  // TUG_COMPRESSION_SPARSE_H_
