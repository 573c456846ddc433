// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_BIAS_REF_H_
#define TUG_KERNELS_REFERENCE_BIAS_REF_H_

#include <cstdint>

namespace tug::kernels {

// BiasGradient of kernels/bias.h, in the precision of T.
template <typename T>
void BiasGradientRef(int64_t rows, int64_t width, const T* dy, T* dbias) {
  for (int64_t i = 0; i < rows * width; ++i) dbias[i % width] += dy[i];
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_BIAS_REF_H_
