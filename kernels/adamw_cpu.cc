#include <cmath>

#include "base/check.h"
#include "kernels/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/bf16-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Multiplications and additions apart, never fused: the pass waits for memory anyway, and so the
// bits are those of the plain C++ reference and of the GPU, on every instruction set.
template <bool kBf16>
HWY_INLINE void Step(int64_t n, const AdamWParams& params, const AdamWConstants& constants,
                     const float* HWY_RESTRICT g, const float* w_in, float* w_out,
                     float* HWY_RESTRICT m, float* HWY_RESTRICT v, uint16_t* HWY_RESTRICT bf16) {
  const FloatTag d;
  const auto scale = hn::Set(d, params.gradient_scale);
  const auto beta1 = hn::Set(d, params.beta1);
  const auto beta2 = hn::Set(d, params.beta2);
  const auto eps = hn::Set(d, params.eps);
  const auto rest1 = hn::Set(d, constants.one_minus_beta1);
  const auto rest2 = hn::Set(d, constants.one_minus_beta2);
  const auto decay = hn::Set(d, constants.decay);
  const auto step_size = hn::Set(d, constants.step_size);
  const auto inverse_root = hn::Set(d, constants.inverse_root_bc2);
  // One vector at i, or as much of it as is left.
  const auto update = [&](int64_t i, int64_t left) HWY_ATTR {
    const auto gradient = hn::Mul(LoadUpTo(g + i, left), scale);
    const auto m_new = hn::Add(hn::Mul(beta1, LoadUpTo(m + i, left)), hn::Mul(rest1, gradient));
    const auto v_new =
        hn::Add(hn::Mul(beta2, LoadUpTo(v + i, left)), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    const auto denominator = hn::Add(hn::Mul(hn::Sqrt(v_new), inverse_root), eps);
    const auto step = hn::Mul(step_size, hn::Div(m_new, denominator));
    const auto w_new = hn::Sub(hn::Mul(LoadUpTo(w_in + i, left), decay), step);
    StoreUpTo(m_new, m + i, left);
    StoreUpTo(v_new, v + i, left);
    StoreUpTo(w_new, w_out + i, left);
    if constexpr (kBf16) StoreUpTo(RoundToBf16(w_new), bf16 + i, left);
  };
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    update(i, lanes);
    update(i + lanes, lanes);
  }
  for (; i < n; i += lanes) update(i, n - i);
}

void AdamWStep(int64_t n, const AdamWParams& params, const AdamWConstants& constants,
               const float* g, const float* w_in, float* w_out, float* m, float* v,
               uint16_t* w_out_bf16) {
  if (w_out_bf16 == nullptr) {
    Step<false>(n, params, constants, g, w_in, w_out, m, v, nullptr);
  } else {
    Step<true>(n, params, constants, g, w_in, w_out, m, v, w_out_bf16);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(AdamWStep);

AdamWConstants MakeAdamWConstants(const AdamWParams& params) {
  TUG_CHECK_GE(params.t, 1);
  const double t = static_cast<double>(params.t);
  const double beta1 = params.beta1;
  const double beta2 = params.beta2;
  const double lr = params.lr;
  return AdamWConstants{
      .one_minus_beta1 = static_cast<float>(1.0 - beta1),
      .one_minus_beta2 = static_cast<float>(1.0 - beta2),
      .decay = static_cast<float>(1.0 - lr * static_cast<double>(params.weight_decay)),
      .step_size = static_cast<float>(lr / (1.0 - std::pow(beta1, t))),
      .inverse_root_bc2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t))),
  };
}

void AdamWStep(int64_t n, const AdamWParams& params, const float* g, const float* w_in,
               float* w_out, float* m, float* v, uint16_t* w_out_bf16) {
  HWY_DYNAMIC_DISPATCH(AdamWStep)
  (n, params, MakeAdamWConstants(params), g, w_in, w_out, m, v, w_out_bf16);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
