#ifndef TUG_KERNELS_GELU_H_
#define TUG_KERNELS_GELU_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// GELU by its tanh approximation, as GPT-2:
//   gelu(u) = u/2 * (1 + tanh(sqrt(2/pi) * (u + 0.044715 u^3)))
// Paper: Hendrycks & Gimpel 2016, "Gaussian error linear units", section 2.

// pre += bias (of its column); y = gelu(pre), in one pass.
//   pre    [rows][width], in: the product x W; out: x W + bias, which the backward pass needs
//   bias   [width], or nullptr: none (pre is then only read)
//   y      [rows][width]; must not overlap pre
// The bits of an element do not depend on its position. Thread-safe for calls with different pools.
void BiasGeluForward(ThreadPool& pool, int64_t rows, int64_t width, const float* bias, float* pre,
                     float* y);

// dx = dy * gelu'(pre).   dy, pre, dx [n]; dx may be dy itself.
// The bits of an element do not depend on its position. Thread-safe for calls with different pools.
void GeluBackward(ThreadPool& pool, int64_t n, const float* dy, const float* pre, float* dx);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_GELU_H_
