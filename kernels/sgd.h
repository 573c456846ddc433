#ifndef TUG_KERNELS_SGD_H_
#define TUG_KERNELS_SGD_H_

#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

struct SgdParams {
  float lr = 1e-3f;  // of this update: schedule and staleness already in it
  float momentum = 0.0f;
  bool nesterov = false;
  float weight_decay = 0.0f;    // added to the gradient, per weight
  float gradient_scale = 1.0f;  // g is multiplied by it first (1 / tokens, clipping)
};

// One update of n elements by stochastic gradient descent with momentum, in one pass:
//   g' = gradient_scale g + weight_decay w_in;  u = momentum u + g'
//   w_out = w_in - lr (nesterov ? g' + momentum u : u)
// Paper: Sutskever et al. 2013, "On the importance of initialization and momentum in deep
// learning", equations 1 to 4, in the form of PyTorch's SGD (the rate outside the momentum).
//   g, w_in, w_out, u   [n], u is read and written; w_out is w_in itself or does not overlap it
// Without momentum (0) u is neither read nor written, and may be null: w_out = w_in - lr g'.
// The bits of an element do not depend on its position or on n. One thread, no pool. Thread-safe.
// `w_out_bf16` [n]: also gets w_out rounded as by Bf16FromFloat (bf16.h); may be null.
void SgdStep(int64_t n, const SgdParams& params, const float* g, const float* w_in, float* w_out,
             float* u, Bf16* w_out_bf16 = nullptr);

// What a gradient of older weights would be at the newer ones, to first order, with the diagonal of
// g g^T in place of the Hessian:
//   g_out = g' + lambda g' g' (w - w_old),  g' = gradient_scale g
// Paper: Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay compensation",
// equation 10. Other properties as SgdStep's.
//   g, w, w_old, g_out   [n], g_out is g itself or overlaps none
void CompensateDelay(int64_t n, float lambda, float gradient_scale, const float* g, const float* w,
                     const float* w_old, float* g_out);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_SGD_H_
