// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_STATE_BYTES_H_
#define TUG_PLAN_STATE_BYTES_H_

namespace tug {

// Training state of Adam, without activations, in bytes per parameter. Source: the lectures' "GPU
// HBM Content During Training"; Rajbhandari et al. 2020 (ZeRO), section 3.1: mixed precision keeps
// 16 Psi, K = 12 of them for the optimizer.
struct StateBytes {
  double parameters = 0;  // read by forward and backward passes
  double gradients = 0;
  double master = 0;         // FP32 weights in addition to the parameters
  double first_moment = 0;   // m
  double second_moment = 0;  // v

  double Optimizer() const { return master + first_moment + second_moment; }  // K
  double All() const { return parameters + gradients + Optimizer(); }
};

// 16-bit parameters and gradients, FP32 master weights.
inline constexpr StateBytes kMixedPrecision = {
    .parameters = 2, .gradients = 2, .master = 4, .first_moment = 4, .second_moment = 4};
// FP32 throughout: the parameters are the master weights.
inline constexpr StateBytes kFullPrecision = {
    .parameters = 4, .gradients = 4, .master = 0, .first_moment = 4, .second_moment = 4};

}  // namespace tug

#endif  // TUG_PLAN_STATE_BYTES_H_
