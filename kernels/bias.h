#ifndef TUG_KERNELS_BIAS_H_
#define TUG_KERNELS_BIAS_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// x += bias on every row.   bias [width]; x [rows][width].
// Thread-safe for calls with different pools.
void AddBias(ThreadPool& pool, int64_t rows, int64_t width, const float* bias, float* x);

// dbias += the sum of dy over rows, in a fixed order.   dy [rows][width]; dbias [width].
// Thread-safe for calls with different pools.
void BiasGradient(ThreadPool& pool, int64_t rows, int64_t width, const float* dy, float* dbias);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_BIAS_H_
