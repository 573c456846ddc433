#ifndef TUG_KERNELS_LAYERNORM_H_
#define TUG_KERNELS_LAYERNORM_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// Added to the variance. As GPT-2 and PyTorch.
inline constexpr float kLayerNormEpsilon = 1e-5f;

// y = (x - mean) * rstd * gamma + beta over each row, rstd = 1 / sqrt(variance + epsilon), the
// variance divided by `width`. Paper: Ba et al. 2016, "Layer normalization", eq. 4.
//   x, y         [rows][width]; y may be x itself
//   gamma        [width]
//   beta         [width], or nullptr: none
//   mean, rstd   [rows], written, for the backward pass
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
void LayerNormForward(ThreadPool& pool, int64_t rows, int64_t width, const float* x,
                      const float* gamma, const float* beta, float* y, float* mean, float* rstd);

// Adds the gradients of LayerNormForward: dx += ..., dgamma += ..., dbeta += ...
// (so dx may hold the gradient that arrives over the residual connection).
//   dy, x, dx        [rows][width]; dx must not overlap dy or x
//   mean, rstd       [rows], as the forward pass wrote them
//   dgamma           [width]
//   dbeta            [width], or nullptr: none
// dgamma and dbeta are summed over rows in a fixed order. Thread-safe for calls with different
// pools.
void LayerNormBackward(ThreadPool& pool, int64_t rows, int64_t width, const float* dy,
                       const float* x, const float* gamma, const float* mean, const float* rstd,
                       float* dx, float* dgamma, float* dbeta);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LAYERNORM_H_
