#ifndef TUG_KERNELS_DROPOUT_REF_H_
#define TUG_KERNELS_DROPOUT_REF_H_

#include <cstdint>

#include "kernels/dropout.h"

namespace tug::kernels {

// Whether element `e` of sample key.sample + sample_offset is kept, straight from the definition.
inline bool DropoutKeepsRef(const DropoutKey& key, uint32_t sample_offset, int64_t e, float p) {
  const auto block = static_cast<uint32_t>(e / 64);
  const auto lane = static_cast<uint32_t>(e % 16);
  const auto words =
      Philox4x32(DropoutCounter(key, sample_offset, block, lane), DropoutPhiloxKey(key));
  return words[e / 16 % 4] >= DropoutThreshold(p);
}

// y = residual + dropout(x + bias), in the precision of T. bias, residual: nullptr for none.
template <typename T>
void DropoutAddRef(int64_t samples, int64_t elements_per_sample, int64_t width, const T* x,
                   const T* bias, const T* residual, float p, const DropoutKey& key, T* y) {
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t e = 0; e < elements_per_sample; ++e) {
      const int64_t i = s * elements_per_sample + e;
      const bool keep = DropoutKeepsRef(key, static_cast<uint32_t>(s), e, p);
      const T value = x[i] + (bias ? bias[e % width] : T(0));
      y[i] = (keep ? value / (T(1) - T(p)) : T(0)) + (residual ? residual[i] : T(0));
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_DROPOUT_REF_H_
