// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_ACTIVATION_REF_H_
#define TUG_KERNELS_REFERENCE_ACTIVATION_REF_H_

#include <cmath>

#include "kernels/activation.h"

namespace tug::kernels {

// gelu(u) = u/2 (1 + tanh(z)), z = sqrt(2/pi) (u + 0.044715 u^3);  relu(u) = max(u, 0).
template <typename T>
T ActivationRef(Activation activation, T u) {
  if (activation == Activation::kRelu) return u > 0 ? u : T(0);
  const T root = std::sqrt(T(2) / T(M_PI));
  return u / 2 * (1 + std::tanh(root * (u + T(0.044715) * u * u * u)));
}

// gelu'(u) = (1 + tanh(z)) / 2 + u/2 (1 - tanh(z)^2) z'.
template <typename T>
T ActivationGradientRef(Activation activation, T u) {
  if (activation == Activation::kRelu) return u > 0 ? T(1) : T(0);
  const T root = std::sqrt(T(2) / T(M_PI));
  const T tanh_z = std::tanh(root * (u + T(0.044715) * u * u * u));
  const T z_slope = root * (1 + 3 * T(0.044715) * u * u);
  return (1 + tanh_z) / 2 + u / 2 * (1 - tanh_z * tanh_z) * z_slope;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_ACTIVATION_REF_H_
