#ifndef TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_
#define TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// What a linear layer does beside its products (kernels/linear_cuda.h), element by element, in
// device memory. They return when the kernel is queued. Errors: those of Launch.

// to = from rounded to nearest, ties to even: the bits of Bf16FromFloat.   from, to [n]
absl::Status RoundToBf16(int64_t n, const float* from, Bf16* to, const Stream& stream);

// y += bias of its column.   y [rows][width], T float or Bf16; bias [width]
template <typename T>
absl::Status AddBias(int64_t rows, int64_t width, const float* bias, T* y, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_LINEAR_ELEMENTS_CUDA_H_
