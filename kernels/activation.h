// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_ACTIVATION_H_
#define TUG_KERNELS_ACTIVATION_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// Activation function of an MLP. T is float or Bf16 throughout; computed in FP32, rounded once.
enum class Activation {
  // GELU in its tanh approximation, as in GPT-2: u/2 * (1 + tanh(sqrt(2/pi) * (u + 0.044715 u^3))).
  // Paper: Hendrycks & Gimpel 2016, "Gaussian error linear units", section 2.
  kGelu,
  kRelu,  // max(u, 0); its derivative at 0 is 0
};

// pre += bias (per column); y = activation(pre), in one pass.
//   pre    [rows][width], in: the product x W; out: x W + bias, which the backward pass needs
//   bias   [width], or nullptr: none (pre is then only read)
//   y      [rows][width]; must not overlap pre
// y is computed from pre as stored (rounded to T). The bits of an element do not depend on its
// position. Thread-safe for calls with different pools.
template <typename T>
void BiasActivationForward(ThreadPool& pool, Activation activation, int64_t rows, int64_t width,
                           const float* bias, T* pre, T* y);

// BiasActivationForward on the calling thread, for a range of columns while it is in cache. Rows
// have `width` elements and start `stride` elements apart, in pre and in y. Thread-safe.
template <typename T>
void BiasActivationTile(Activation activation, int64_t rows, int64_t width, int64_t stride,
                        const float* bias, T* pre, T* y);

// dx = dy * activation'(pre).   dy, pre, dx [n]; dx may be dy itself.
// The bits of an element do not depend on its position. Thread-safe for calls with different pools.
template <typename T>
void ActivationBackward(ThreadPool& pool, Activation activation, int64_t n, const T* dy,
                        const T* pre, T* dx);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ACTIVATION_H_
