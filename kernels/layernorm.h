// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_LAYERNORM_H_
#define TUG_KERNELS_LAYERNORM_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/dropout.h"

namespace tug::kernels {

// Added to the variance; the value of GPT-2 and PyTorch.
inline constexpr float kLayerNormEpsilon = 1e-5f;

// T (activations) is float or Bf16; S (parameters and statistics) is float. Arithmetic is FP32. The
// reference has both in its own precision.

template <typename T, typename S = float>
struct LayerNormForwardArgs {
  int64_t rows;
  int64_t width;
  const T* x;      // [rows][width]
  const S* gamma;  // [width]
  const S* beta;   // [width], or nullptr: none
  T* y;            // [rows][width]; may be x
  S* mean;         // [rows], written, for the backward pass
  S* rstd;         // [rows], written, for the backward pass
};

// y = (x - mean) * rstd * gamma + beta over each row, rstd = 1 / sqrt(variance + epsilon), the
// variance divided by `width`. Paper: Ba et al. 2016, "Layer normalization", eq. 4.
// The bits of a row depend on that row alone. Thread-safe for calls with different pools.
template <typename T>
void LayerNormForward(ThreadPool& pool, const LayerNormForwardArgs<T>& args);

template <typename T, typename S = float>
struct ResidualLayerNormForwardArgs {
  DropoutAddArgs<T, S> add;  // REQUIRES: a residual, and a width that divides elements_per_sample
  const S* gamma;            // [add.width]
  const S* beta;             // [add.width], or nullptr: none
  T* y;                      // shape of add.y; must not overlap it
  S* mean;                   // [rows]
  S* rstd;                   // [rows]

  int64_t rows() const { return add.samples * add.elements_per_sample / add.width; }
  // The LayerNorm that follows the sum.
  LayerNormForwardArgs<T, S> norm() const {
    return {rows(), add.width, add.y, gamma, beta, y, mean, rstd};
  }
};

// add.y = residual + dropout(x + bias);  y = LayerNorm(add.y), each row in one pass. Bit-identical
// to DropoutAdd followed by LayerNormForward (y is computed from the sum as stored).
template <typename T>
void ResidualLayerNormForward(ThreadPool& pool, const ResidualLayerNormForwardArgs<T>& args);

template <typename T, typename S = float>
struct LayerNormBackwardArgs {
  int64_t rows;
  int64_t width;
  const T* dy;      // [rows][width]
  const T* x;       // [rows][width]
  const S* gamma;   // [width]
  const S* mean;    // [rows], from the forward pass
  const S* rstd;    // [rows], from the forward pass
  bool accumulate;  // dx += instead of dx =
  T* dx;            // [rows][width]; without `accumulate` may be dy, else must not overlap
  S* dgamma;        // [width], added to
  S* dbeta;         // [width], added to; or nullptr: none
};

// Gradients of LayerNormForward: dgamma += ..., dbeta += ..., and dx = ..., or with `accumulate` dx
// += ... (dx may hold the gradient of the residual connection).
// dgamma and dbeta are summed over rows in a fixed order. Thread-safe for calls with different
// pools.
template <typename T>
void LayerNormBackward(ThreadPool& pool, const LayerNormBackwardArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LAYERNORM_H_
