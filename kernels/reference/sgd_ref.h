// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_SGD_REF_H_
#define TUG_KERNELS_REFERENCE_SGD_REF_H_

#include "kernels/sgd.h"

namespace tug::kernels {

// The equations of sgd.h for one parameter, in any precision T. In FP32 the operations and their
// order are those of the fast version: bit-identical to it.
template <typename T>
void SgdRef(const SgdParams& params, T gradient, T& w, T& u) {
  const T momentum = params.momentum;
  const T g = gradient * T{params.gradient_scale} + T{params.weight_decay} * w;
  T direction = g;
  if (params.momentum != 0) {
    u = momentum * u + g;
    direction = params.nesterov ? g + momentum * u : u;
  }
  w = w - T{params.lr} * direction;
}

template <typename T>
T CompensateDelayRef(float lambda, float gradient_scale, T gradient, T w, T w_old) {
  const T g = gradient * T{gradient_scale};
  return g + T{lambda} * (g * g) * (w - w_old);
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_SGD_REF_H_
