// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_SGD_H_
#define TUG_KERNELS_SGD_H_

#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

struct SgdParams {
  float lr = 1e-3f;  // rate of this update, schedule and staleness included
  float momentum = 0.0f;
  bool nesterov = false;
  float weight_decay = 0.0f;    // coupled: added to the gradient, per weight
  float gradient_scale = 1.0f;  // factor applied to g first (1 / tokens, clipping)
};

struct SgdArgs {
  int64_t n;
  const float* g;     // [n]
  const float* w_in;  // [n]
  float* w_out;       // [n]; w_in itself, or no overlap
  float* u;           // [n], read and written; not used without momentum: may then be nullptr
  Bf16* w_out_bf16 = nullptr;  // [n], w_out rounded as by Bf16FromFloat (bf16.h); or nullptr
};

// One update of n elements by stochastic gradient descent with momentum, in one pass:
//   g' = gradient_scale g + weight_decay w_in;  u = momentum u + g'
//   w_out = w_in - lr (nesterov ? g' + momentum u : u)
// Paper: Sutskever et al. 2013, "On the importance of initialization and momentum in deep
// learning", equations 1 to 4, in the form of PyTorch's SGD (the rate outside the momentum).
// Without momentum (0): w_out = w_in - lr g'.
// The bits of an element do not depend on its position or on n. One thread, no pool. Thread-safe.
void SgdStep(const SgdParams& params, const SgdArgs& args);

// Estimates to first order what the gradient computed at w_old would be at w, with the diagonal of
// g g^T instead of the Hessian:
//   g_out = g' + lambda g' g' (w - w_old),  g' = gradient_scale g
// Paper: Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay compensation",
// equation 10. Bits and threads: as SgdStep.
//   g, w, w_old, g_out   [n], g_out is g itself or overlaps none
void CompensateDelay(int64_t n, float lambda, float gradient_scale, const float* g, const float* w,
                     const float* w_old, float* g_out);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_SGD_H_
