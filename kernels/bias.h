// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_BIAS_H_
#define TUG_KERNELS_BIAS_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// T is float or Bf16; sums are FP32.

// dbias += the sum of dy over rows, in a fixed order.   dy [rows][width]; dbias [width].
// Thread-safe for calls with different pools.
template <typename T>
void BiasGradient(ThreadPool& pool, int64_t rows, int64_t width, const T* dy, float* dbias);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_BIAS_H_
