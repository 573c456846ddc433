// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_BIAS_CUDA_H_
#define TUG_KERNELS_CUDA_BIAS_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// BiasGradient of kernels/bias.h on the GPU: dbias += the sum of dy over rows, in FP32, in a fixed
// order that differs from the CPU's. T is float or Bf16.
//   dy     [rows][dy_stride], `width` columns are read; dy_stride >= width
//   dbias  [width]
// Both in device memory. Returns once the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h), and of ScratchBuffer (kernels/cuda/device/device.h) for
// partial sums.
template <typename T>
absl::Status BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride, float* dbias,
                          const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_BIAS_CUDA_H_
