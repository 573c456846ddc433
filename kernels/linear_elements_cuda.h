#ifndef TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_
#define TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// What a linear layer (kernels/linear_cuda.h) does after a product that does not add the bias:
// y += bias of its column.
//   y      [rows][y_stride], of which `width` columns count, T float or Bf16
//   bias   [width], B float, or Bf16 where T is
// Both in device memory. Returns when the kernel is queued. Errors: those of Launch.
template <typename B, typename T>
absl::Status AddBias(int64_t rows, int64_t width, const B* bias, T* y, int64_t y_stride,
                     const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_
