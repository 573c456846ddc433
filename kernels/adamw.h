// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_ADAMW_H_
#define TUG_KERNELS_ADAMW_H_

#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

struct AdamWParams {
  float lr = 1e-3f;  // rate of this update, schedule and staleness included
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0.0f;    // decoupled: w shrinks by lr * weight_decay
  int64_t t = 1;                // number of this update, from 1
  int64_t freeze_v_after = 0;   // number of updates that change v; 0: all
  float gradient_scale = 1.0f;  // factor applied to g first (1 / tokens, clipping)
};

// Constants of one update, the same for every element: computed in FP64, then rounded.
struct AdamWConstants {
  float one_minus_beta1;
  float one_minus_beta2;
  float decay;             // 1 - lr * weight_decay
  float step_size;         // lr / (1 - beta1^t)
  float inverse_root_bc2;  // 1 / sqrt(1 - beta2^t), t: the last update that changed v
  bool v_stays;            // t > freeze_v_after
};
// REQUIRES: params.t >= 1.
AdamWConstants MakeAdamWConstants(const AdamWParams& params);

struct AdamWArgs {
  int64_t n;
  const float* g;              // [n]
  const float* w_in;           // [n]
  float* w_out;                // [n]; w_in itself, or no overlap
  float* m;                    // [n], read and written
  float* v;                    // [n], read and written
  Bf16* w_out_bf16 = nullptr;  // [n], w_out rounded as by Bf16FromFloat (bf16.h); or nullptr
};

// One AdamW update of n elements, in one pass:
//   g' = gradient_scale g;  m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2
//   w_out = w_in (1 - lr weight_decay) - lr m_hat / (sqrt(v_hat) + eps)
// Paper: Loshchilov & Hutter 2019, "Decoupled weight decay regularization", algorithm 2, in
// PyTorch's order. After `freeze_v_after` updates v is only read, and v_hat stays that of the last
// update that changed it (Tang et al. 2021, "1-bit Adam", algorithm 1).
// The bits of an element do not depend on its position or on n. One thread, no pool. Thread-safe.
void AdamWStep(const AdamWParams& params, const AdamWArgs& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ADAMW_H_
