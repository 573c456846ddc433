#ifndef TUG_KERNELS_ACTIVATION_CUDA_H_
#define TUG_KERNELS_ACTIVATION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// Those of kernels/activation.h on the GPU. T is float or Bf16 throughout; computed in FP32,
// rounded once. ReLU has the CPU's bits, GELU those of another exponential. They return when the
// kernel is queued. Errors: those of Launch (kernels/cuda_language.h). No alignment is needed, but
// they are faster at boundaries of 16 bytes, with rows that are multiples of 16 bytes.

// pre += bias (of its column); y = activation(pre), in one pass, from pre as it is stored.
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

#endif  // TUG_KERNELS_ACTIVATION_CUDA_H_
