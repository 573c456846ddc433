// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_DROPOUT_REF_H_
#define TUG_KERNELS_REFERENCE_DROPOUT_REF_H_

#include <cstdint>

#include "kernels/dropout.h"

namespace tug::kernels {

// Whether element `e` of sample key.sample + sample_offset is kept, by the definition.
inline bool DropoutKeepsRef(const DropoutKey& key, uint32_t sample_offset, int64_t e, float p) {
  const auto block = static_cast<uint32_t>(e / 64);
  const auto lane = static_cast<uint32_t>(e % 16);
  const auto words =
      Philox4x32(DropoutCounter(key, sample_offset, block, lane), DropoutPhiloxKey(key));
  return words[e / 16 % 4] >= DropoutThreshold(p);
}

// DropoutAdd of kernels/dropout.h, in the precision of T.
template <typename T>
void DropoutAddRef(const DropoutAddArgs<T, T>& a) {
  for (int64_t s = 0; s < a.samples; ++s) {
    for (int64_t e = 0; e < a.elements_per_sample; ++e) {
      const int64_t i = s * a.elements_per_sample + e;
      const bool keep = DropoutKeepsRef(a.key, static_cast<uint32_t>(s), e, a.p);
      const T value = a.x[i] + (a.bias ? a.bias[e % a.width] : T(0));
      a.y[i] = (keep ? value / (T(1) - T(a.p)) : T(0)) + (a.residual ? a.residual[i] : T(0));
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_DROPOUT_REF_H_
