// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_LAYERNORM_REF_H_
#define TUG_KERNELS_REFERENCE_LAYERNORM_REF_H_

#include <cmath>
#include <cstdint>

#include "kernels/layernorm.h"

namespace tug::kernels {

// LayerNormForward of kernels/layernorm.h, in the precision of T.
template <typename T>
void LayerNormForwardRef(const LayerNormForwardArgs<T, T>& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* x = a.x + r * a.width;
    T sum = 0;
    for (int64_t i = 0; i < a.width; ++i) sum += x[i];
    const T mean = a.mean[r] = sum / T(a.width);
    T variance = 0;
    for (int64_t i = 0; i < a.width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const T rstd = a.rstd[r] = T(1) / std::sqrt(variance / T(a.width) + T(kLayerNormEpsilon));
    for (int64_t i = 0; i < a.width; ++i) {
      a.y[r * a.width + i] = (x[i] - mean) * rstd * a.gamma[i] + (a.beta ? a.beta[i] : T(0));
    }
  }
}

// With n = (x - mean) rstd and g = dy gamma: dx += rstd (g - mean(g) - n mean(g n)); without
// `accumulate` dx starts at 0.
template <typename T>
void LayerNormBackwardRef(const LayerNormBackwardArgs<T, T>& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* const x = a.x + r * a.width;
    const T* const dy = a.dy + r * a.width;
    T* const dx = a.dx + r * a.width;
    T mean_g = 0;
    T mean_gn = 0;
    for (int64_t i = 0; i < a.width; ++i) {
      const T n = (x[i] - a.mean[r]) * a.rstd[r];
      const T g = dy[i] * a.gamma[i];
      mean_g += g / T(a.width);
      mean_gn += g * n / T(a.width);
      a.dgamma[i] += dy[i] * n;
      if (a.dbeta) a.dbeta[i] += dy[i];
    }
    for (int64_t i = 0; i < a.width; ++i) {
      const T n = (x[i] - a.mean[r]) * a.rstd[r];
      if (!a.accumulate) dx[i] = 0;
      dx[i] += a.rstd[r] * (dy[i] * a.gamma[i] - mean_g - n * mean_gn);
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_LAYERNORM_REF_H_
