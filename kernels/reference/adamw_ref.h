// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_ADAMW_REF_H_
#define TUG_KERNELS_REFERENCE_ADAMW_REF_H_

#include <cmath>
#include <cstdint>

#include "kernels/adamw.h"

namespace tug::kernels {

// Loshchilov & Hutter 2019, "Decoupled weight decay regularization", algorithm 2, line by line, for
// one parameter theta. eta = 1: the schedule multiplies alpha.
struct AdamWRefState {
  double theta;
  double m;
  double v;
};

inline void AdamWRef(const AdamWParams& params, double gradient, AdamWRefState& state) {
  const double alpha = params.lr;
  const double beta1 = params.beta1;
  const double beta2 = params.beta2;
  const double epsilon = params.eps;
  const double lambda = params.weight_decay;
  const double t = static_cast<double>(params.t);
  const bool v_stays = params.freeze_v_after > 0 && params.t > params.freeze_v_after;
  const double v_t = v_stays ? static_cast<double>(params.freeze_v_after) : t;

  const double g = gradient * params.gradient_scale;              // line 6
  state.m = beta1 * state.m + (1 - beta1) * g;                    // line 7
  if (!v_stays) state.v = beta2 * state.v + (1 - beta2) * g * g;  // line 8
  const double m_hat = state.m / (1 - std::pow(beta1, t));        // line 9
  const double v_hat = state.v / (1 - std::pow(beta2, v_t));      // line 10
  state.theta -= alpha * (m_hat / (std::sqrt(v_hat) + epsilon))  // line 12, alpha lambda as PyTorch
                 + alpha * lambda * state.theta;
}

// AdamWRef in FP32, in the order of operations of the fast versions: bit-identical to them.
inline void AdamWRefFloat(const AdamWParams& params, const AdamWConstants& c, float gradient,
                          float& w, float& m, float& v) {
  const float g = gradient * params.gradient_scale;
  m = params.beta1 * m + c.one_minus_beta1 * g;
  if (!c.v_stays) v = params.beta2 * v + c.one_minus_beta2 * (g * g);
  w = w * c.decay - c.step_size * (m / (std::sqrt(v) * c.inverse_root_bc2 + params.eps));
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_ADAMW_REF_H_
