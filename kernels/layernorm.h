#ifndef TUG_KERNELS_LAYERNORM_H_
#define TUG_KERNELS_LAYERNORM_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/dropout.h"

namespace tug::kernels {

// Added to the variance. As GPT-2 and PyTorch.
inline constexpr float kLayerNormEpsilon = 1e-5f;

// T is float or Bf16; statistics and arithmetic are FP32.

// y = (x - mean) * rstd * gamma + beta over each row, rstd = 1 / sqrt(variance + epsilon), the
// variance divided by `width`. Paper: Ba et al. 2016, "Layer normalization", eq. 4.
//   x, y         [rows][width]; y may be x itself
//   gamma        [width]
//   beta         [width], or nullptr: none
//   mean, rstd   [rows], written, for the backward pass
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
template <typename T>
void LayerNormForward(ThreadPool& pool, int64_t rows, int64_t width, const T* x, const float* gamma,
                      const float* beta, T* y, float* mean, float* rstd);

// sum = residual + dropout(x + bias);  y = LayerNorm(sum), each row in one pass: BiasDropoutAdd and
// LayerNormForward, bit for bit (y is computed from sum as it is stored).
//   x, residual, sum, y   [samples][seq][width]; sum may be x or residual itself
//   bias                  [width], or nullptr
template <typename T>
void ResidualLayerNormForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                              const T* x, const float* bias, const T* residual, float p,
                              const DropoutKey& key, const float* gamma, const float* beta, T* sum,
                              T* y, float* mean, float* rstd);

// Gradients of LayerNormForward: dgamma += ..., dbeta += ..., and dx = ..., or with `accumulate`
// dx += ... (so that dx may hold the gradient that arrives over the residual connection).
//   dy, x, dx        [rows][width]; dx may be dy itself without `accumulate`, else must not overlap
//   mean, rstd       [rows], as the forward pass wrote them
//   dgamma           [width]
//   dbeta            [width], or nullptr: none
// dgamma and dbeta are summed over rows in a fixed order. Thread-safe for calls with different
// pools.
template <typename T>
void LayerNormBackward(ThreadPool& pool, int64_t rows, int64_t width, const T* dy, const T* x,
                       const float* gamma, const float* mean, const float* rstd, bool accumulate,
                       T* dx, float* dgamma, float* dbeta);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LAYERNORM_H_
