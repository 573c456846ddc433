#ifndef TUG_KERNELS_LAYERNORM_CUDA_H_
#define TUG_KERNELS_LAYERNORM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/layernorm.h"

namespace tug::kernels::cuda {

// Those of kernels/layernorm.h on the GPU. T is float or Bf16; statistics and arithmetic are FP32.
// Sums are in a fixed order, which is not the CPU's: the bits of a row's results depend on that row
// alone, those of dgamma and dbeta on the rows and their count. All pointers are to device memory.
// They return when the work is queued. Errors: those of Launch (kernels/cuda_language.h) and of
// ScratchBuffer (kernels/device.h); INVALID_ARGUMENT (a width above kMaxLayerNormWidth).
inline constexpr int64_t kMaxLayerNormWidth = 8192;

// y = (x - mean) * rstd * gamma + beta over each row, rstd = 1 / sqrt(variance + epsilon).
//   x, y         [rows][width]; y may be x itself
//   gamma        [width]
//   beta         [width], or nullptr: none
//   mean, rstd   [rows], written, for the backward pass
template <typename T>
absl::Status LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                              const float* beta, T* y, float* mean, float* rstd,
                              const Stream& stream);

// sum = residual + dropout(x + bias);  y = LayerNorm(sum): BiasDropoutAdd and LayerNormForward, bit
// for bit; in one pass where 64 divides the width.
//   x, residual, sum, y   [samples][seq][width]; sum may be x or residual itself
//   bias                  [width], or nullptr
template <typename T>
absl::Status ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width, const T* x,
                                      const float* bias, const T* residual, float p,
                                      const DropoutKey& key, const float* gamma, const float* beta,
                                      T* sum, T* y, float* mean, float* rstd, const Stream& stream);

// Gradients of LayerNormForward: dgamma += ..., dbeta += ..., and dx = ..., or with `accumulate`
// dx += ....
//   dy, x, dx        [rows][width]; dx may be dy itself without `accumulate`, else must not overlap
//   mean, rstd       [rows], as the forward pass wrote them
//   dgamma           [width]
//   dbeta            [width], or nullptr: none
template <typename T>
absl::Status LayerNormBackward(int64_t rows, int64_t width, const T* dy, const T* x,
                               const float* gamma, const float* mean, const float* rstd,
                               bool accumulate, T* dx, float* dgamma, float* dbeta,
                               const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_LAYERNORM_CUDA_H_
