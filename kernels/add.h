#ifndef TUG_KERNELS_ADD_H_
#define TUG_KERNELS_ADD_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// y = a + b.   a, b, y [n]; y may be a or b itself.
// Thread-safe for calls with different pools.
void Add(ThreadPool& pool, int64_t n, const float* a, const float* b, float* y);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ADD_H_
