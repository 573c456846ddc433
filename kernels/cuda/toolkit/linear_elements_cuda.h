// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_TOOLKIT_LINEAR_ELEMENTS_CUDA_H_
#define TUG_KERNELS_CUDA_TOOLKIT_LINEAR_ELEMENTS_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// Adds the bias of a linear layer (kernels/cuda/toolkit/linear_cuda.h) after a product that does
// not: y += bias, per column.
//   y      [rows][y_stride], `width` columns are changed, T float or Bf16
//   bias   [width], B float, or Bf16 if T is Bf16
// Both in device memory. Returns once the kernel is queued. Errors: those of Launch.
template <typename B, typename T>
absl::Status AddBias(int64_t rows, int64_t width, const B* bias, T* y, int64_t y_stride,
                     const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_TOOLKIT_LINEAR_ELEMENTS_CUDA_H_
