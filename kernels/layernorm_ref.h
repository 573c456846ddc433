#ifndef TUG_KERNELS_LAYERNORM_REF_H_
#define TUG_KERNELS_LAYERNORM_REF_H_

#include <cmath>
#include <cstdint>

#include "kernels/layernorm.h"

namespace tug::kernels {

// LayerNormForward of kernels/layernorm.h, in the precision of T.
template <typename T>
void LayerNormForwardRef(int64_t rows, int64_t width, const T* x, const T* gamma, const T* beta,
                         T* y, T* mean, T* rstd) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * width;
    T sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += row[i];
    mean[r] = sum / T(width);
    T variance = 0;
    for (int64_t i = 0; i < width; ++i) variance += (row[i] - mean[r]) * (row[i] - mean[r]);
    rstd[r] = T(1) / std::sqrt(variance / T(width) + T(kLayerNormEpsilon));
    for (int64_t i = 0; i < width; ++i) {
      y[r * width + i] = (row[i] - mean[r]) * rstd[r] * gamma[i] + (beta ? beta[i] : T(0));
    }
  }
}

// With n = (x - mean) rstd and g = dy gamma: dx += rstd (g - mean(g) - n mean(g n)); without
// `accumulate` dx begins as 0.
template <typename T>
void LayerNormBackwardRef(int64_t rows, int64_t width, const T* dy, const T* x, const T* gamma,
                          const T* mean, const T* rstd, bool accumulate, T* dx, T* dgamma,
                          T* dbeta) {
  for (int64_t r = 0; r < rows; ++r) {
    T mean_g = 0;
    T mean_gn = 0;
    for (int64_t i = 0; i < width; ++i) {
      const T n = (x[r * width + i] - mean[r]) * rstd[r];
      const T g = dy[r * width + i] * gamma[i];
      mean_g += g / T(width);
      mean_gn += g * n / T(width);
      dgamma[i] += dy[r * width + i] * n;
      if (dbeta) dbeta[i] += dy[r * width + i];
    }
    for (int64_t i = 0; i < width; ++i) {
      const T n = (x[r * width + i] - mean[r]) * rstd[r];
      if (!accumulate) dx[r * width + i] = 0;
      dx[r * width + i] += rstd[r] * (dy[r * width + i] * gamma[i] - mean_g - n * mean_gn);
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LAYERNORM_REF_H_
