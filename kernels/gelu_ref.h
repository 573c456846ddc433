#ifndef TUG_KERNELS_GELU_REF_H_
#define TUG_KERNELS_GELU_REF_H_

#include <cmath>

namespace tug::kernels {

// gelu(u) = u/2 (1 + tanh(z)), z = sqrt(2/pi) (u + 0.044715 u^3).
template <typename T>
T GeluRef(T u) {
  const T root = std::sqrt(T(2) / T(M_PI));
  return u / 2 * (1 + std::tanh(root * (u + T(0.044715) * u * u * u)));
}

// gelu'(u) = (1 + tanh(z)) / 2 + u/2 (1 - tanh(z)^2) z'.
template <typename T>
T GeluGradientRef(T u) {
  const T root = std::sqrt(T(2) / T(M_PI));
  const T tanh_z = std::tanh(root * (u + T(0.044715) * u * u * u));
  const T z_slope = root * (1 + 3 * T(0.044715) * u * u);
  return (1 + tanh_z) / 2 + u / 2 * (1 - tanh_z * tanh_z) * z_slope;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_GELU_REF_H_
