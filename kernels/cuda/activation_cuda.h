// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ACTIVATION_CUDA_H_
#define TUG_KERNELS_CUDA_ACTIVATION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// The operations of kernels/activation.h on the GPU. T is float or Bf16 throughout; computed in
// FP32, rounded once. ReLU has the CPU's bits; GELU has not, since its exponential differs. They
// return once the kernel is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h).
// No alignment is needed; fastest with pointers and rows aligned to 16 bytes.

// pre += bias (per column); y = activation(pre), in one pass, from pre as stored (rounded to T).
//   pre    [rows][width]
//   bias   [width], or nullptr: none (pre is then only read)
//   y      [rows][width]; must not overlap pre
// All in device memory.
template <typename T>
absl::Status BiasActivationForward(Activation activation, int64_t rows, int64_t width,
                                   const float* bias, T* pre, T* y, const Stream& stream);

// dx = dy * activation'(pre).   dy, pre, dx [n] in device memory; dx may be dy itself.
template <typename T>
absl::Status ActivationBackward(Activation activation, int64_t n, const T* dy, const T* pre, T* dx,
                                const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ACTIVATION_CUDA_H_
