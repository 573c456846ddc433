// SPDX-License-Identifier: Apache-2.0
#include "kernels/sgd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sgd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Multiplications and additions are never fused, as in adamw_cpu.cc: the pass is limited by memory
// anyway, and the bits equal those of the plain C++ reference on every instruction set.
template <bool kMomentum>
HWY_INLINE void Step(const SgdParams& params, const SgdArgs& args) {
  const FloatTag d;
  const auto [n, g, w_in, w_out, u, w_out_bf16] = args;
  const auto lr = hn::Set(d, params.lr);
  const auto momentum = hn::Set(d, params.momentum);
  const auto decay = hn::Set(d, params.weight_decay);
  const auto scale = hn::Set(d, params.gradient_scale);
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const int64_t left = n - i;
    const auto w = LoadUpTo(w_in + i, left);
    const auto gradient = hn::Add(hn::Mul(LoadUpTo(g + i, left), scale), hn::Mul(decay, w));
    auto direction = gradient;
    if constexpr (kMomentum) {
      const auto u_new = hn::Add(hn::Mul(momentum, LoadUpTo(u + i, left)), gradient);
      StoreUpTo(u_new, u + i, left);
      direction = params.nesterov ? hn::Add(gradient, hn::Mul(momentum, u_new)) : u_new;
    }
    const auto w_new = hn::Sub(w, hn::Mul(lr, direction));
    StoreUpTo(w_new, w_out + i, left);
    if (w_out_bf16 != nullptr) StoreUpTo(w_new, w_out_bf16 + i, left);
  }
}

void SgdStep(const SgdParams& params, const SgdArgs& args) {
  if (params.momentum == 0) return Step<false>(params, args);
  Step<true>(params, args);
}

void CompensateDelay(int64_t n, float lambda, float gradient_scale, const float* g, const float* w,
                     const float* w_old, float* g_out) {
  const FloatTag d;
  const auto lambdas = hn::Set(d, lambda);
  const auto scale = hn::Set(d, gradient_scale);
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const int64_t left = n - i;
    const auto gradient = hn::Mul(LoadUpTo(g + i, left), scale);
    const auto moved = hn::Sub(LoadUpTo(w + i, left), LoadUpTo(w_old + i, left));
    const auto curvature = hn::Mul(lambdas, hn::Mul(gradient, gradient));
    StoreUpTo(hn::Add(gradient, hn::Mul(curvature, moved)), g_out + i, left);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(SgdStep);
HWY_EXPORT(CompensateDelay);

void SgdStep(const SgdParams& params, const SgdArgs& args) {
  HWY_DYNAMIC_DISPATCH(SgdStep)(params, args);
}

void CompensateDelay(int64_t n, float lambda, float gradient_scale, const float* g, const float* w,
                     const float* w_old, float* g_out) {
  HWY_DYNAMIC_DISPATCH(CompensateDelay)(n, lambda, gradient_scale, g, w, w_old, g_out);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
