#ifndef TUG_KERNELS_DROPOUT_CUDA_H_
#define TUG_KERNELS_DROPOUT_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/dropout.h"

namespace tug::kernels::cuda {

// Those of kernels/dropout.h on the GPU: the same masks, and the CPU's bits. T is float or Bf16;
// all pointers are to device memory. They return when the kernel is queued. Errors: those of Launch
// (kernels/cuda_language.h).

// y = residual + dropout(x), dropout(x) = keep ? x / (1 - p) : 0.
//   x, y       [samples][elements_per_sample]; y may be x or residual itself
//   residual   the same shape, or nullptr: none
// REQUIRES: 0 <= p < 1; elements_per_sample <= 2^34.
template <typename T>
absl::Status DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x, const T* residual,
                        float p, const DropoutKey& key, T* y, const Stream& stream);

// y = residual + dropout(x + bias).
//   bias   [width], or nullptr: none. Added to every row of `width`.
// REQUIRES: also that width divides elements_per_sample.
template <typename T>
absl::Status BiasDropoutAdd(int64_t samples, int64_t elements_per_sample, int64_t width, const T* x,
                            const float* bias, const T* residual, float p, const DropoutKey& key,
                            T* y, const Stream& stream);

// dx = keep ? dy / (1 - p) : 0.   dy, dx [samples][elements_per_sample]; dx may be dy itself.
// The same requirements; `key` as in the forward pass.
template <typename T>
absl::Status DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy, float p,
                             const DropoutKey& key, T* dx, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_DROPOUT_CUDA_H_
