// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw_cpu.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// The arguments from element i on.
HWY_INLINE AdamWArgs From(const AdamWArgs& a, int64_t i) {
  return {a.n - i,
          a.g + i,
          a.w_in + i,
          a.w_out + i,
          a.m + i,
          a.v + i,
          a.w_out_bf16 == nullptr ? nullptr : a.w_out_bf16 + i};
}

// kStreamed: written bypassing the caches, from a vector boundary on. Memory that is overwritten
// completely need not be read first, which out of cache saves a tenth (the bf16 copy) to a third
// (the weights, too) of the time. The next reader of the weights loses part of this gain, and more
// than the gain only if everything would have stayed in cache, which is fast anyway.
enum class Bf16Copy { kNone, kStored, kStreamed };

// Prefetch distance. With the bf16 copy there are too many arrays for the hardware prefetcher
// alone.
constexpr int64_t kAheadElements = 96;

// Prefetches the two vectors from p on.
HWY_INLINE void PrefetchPair(const float* p) {
  hwy::Prefetch(p);
  hwy::Prefetch(p + FloatLanes());
}

// Multiplications and additions are never fused: the pass is limited by memory anyway, and the bits
// equal those of the plain C++ reference and of the GPU, on every instruction set.
template <bool kStreamWeights, Bf16Copy kBf16>
HWY_INLINE void Step(const AdamWParams& params, const AdamWConstants& constants,
                     const AdamWArgs args) {
  const FloatTag d;
  const auto [n, g, w_in, w_out, m, v, bf16] = args;
  const auto scale = hn::Set(d, params.gradient_scale);
  const auto beta1 = hn::Set(d, params.beta1);
  const auto beta2 = hn::Set(d, params.beta2);
  const auto eps = hn::Set(d, params.eps);
  const auto rest1 = hn::Set(d, constants.one_minus_beta1);
  const auto rest2 = hn::Set(d, constants.one_minus_beta2);
  const auto decay = hn::Set(d, constants.decay);
  const auto step_size = hn::Set(d, constants.step_size);
  const auto inverse_root = hn::Set(d, constants.inverse_root_bc2);
  const auto v_stays = hn::MaskFromVec(hn::Set(d, constants.v_stays ? -1.0f : 0.0f));
  // Updates the moments of one vector, or of its `left` elements; returns the new weights.
  const auto update = [&](const float* g, const float* w, float* m, float* v,
                          int64_t left) HWY_ATTR {
    const auto gradient = hn::Mul(LoadUpTo(g, left), scale);
    const auto m_new = hn::Add(hn::Mul(beta1, LoadUpTo(m, left)), hn::Mul(rest1, gradient));
    const auto v_old = LoadUpTo(v, left);
    const auto v_new =
        hn::IfThenElse(v_stays, v_old,
                       hn::Add(hn::Mul(beta2, v_old), hn::Mul(rest2, hn::Mul(gradient, gradient))));
    const auto denominator = hn::Add(hn::Mul(hn::Sqrt(v_new), inverse_root), eps);
    const auto step = hn::Mul(step_size, hn::Div(m_new, denominator));
    StoreUpTo(m_new, m, left);
    StoreUpTo(v_new, v, left);
    return hn::Sub(hn::Mul(LoadUpTo(w, left), decay), step);
  };
  const auto store = [](FloatVector w_new, float* w) HWY_ATTR {
    if constexpr (kStreamWeights) {
      hn::Stream(w_new, FloatTag(), w);
    } else {
      hn::StoreU(w_new, FloatTag(), w);
    }
  };
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const int64_t j = i + lanes;
    if constexpr (kBf16 != Bf16Copy::kNone) {
      PrefetchPair(g + i + kAheadElements);
      PrefetchPair(m + i + kAheadElements);
      PrefetchPair(v + i + kAheadElements);
      PrefetchPair(w_in + i + kAheadElements);
    }
    const auto w0 = update(g + i, w_in + i, m + i, v + i, lanes);
    store(w0, w_out + i);
    const auto w1 = update(g + j, w_in + j, m + j, v + j, lanes);
    store(w1, w_out + j);
    if constexpr (kBf16 != Bf16Copy::kNone) {
      StoreBf16Pair<kBf16 == Bf16Copy::kStreamed>(w0, w1, bf16 + i);
    }
  }
  for (; i < n; i += lanes) {
    const auto w_new = update(g + i, w_in + i, m + i, v + i, n - i);
    StoreUpTo(w_new, w_out + i, n - i);
    if constexpr (kBf16 != Bf16Copy::kNone) StoreUpTo(w_new, bf16 + i, n - i);
  }
}

HWY_INLINE bool AtBoundary(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % (static_cast<uintptr_t>(FloatLanes()) * sizeof(float)) ==
         0;
}

template <Bf16Copy kBf16>
HWY_INLINE void StepAtBoundary(const AdamWParams& params, const AdamWConstants& constants,
                               const AdamWArgs& args) {
  if (args.w_out != args.w_in && AtBoundary(args.w_out)) {
    Step<true, kBf16>(params, constants, args);
  } else {
    Step<false, kBf16>(params, constants, args);
  }
}

// 1. Up to the vector boundary of the bf16 copy, or of w_out without a copy: everything goes
// through the caches. 2. From there on: arrays that are only written and are at a boundary bypass
// them.
void AdamWStep(const AdamWParams& params, const AdamWConstants& constants, const AdamWArgs& args) {
  const bool copies = args.w_out_bf16 != nullptr;
  const int64_t most = std::min(args.n, (copies ? 2 : 1) * FloatLanes());
  AdamWArgs head = args;
  for (head.n = 0; head.n < most; ++head.n) {
    if (copies ? AtBoundary(args.w_out_bf16 + head.n) : AtBoundary(args.w_out + head.n)) break;
  }
  const AdamWArgs rest = From(args, head.n);
  if (!copies) {
    Step<false, Bf16Copy::kNone>(params, constants, head);
    StepAtBoundary<Bf16Copy::kNone>(params, constants, rest);
  } else {
    Step<false, Bf16Copy::kStored>(params, constants, head);
    if (AtBoundary(rest.w_out_bf16)) {
      StepAtBoundary<Bf16Copy::kStreamed>(params, constants, rest);
    } else {  // the bf16 copy is at an odd address
      StepAtBoundary<Bf16Copy::kStored>(params, constants, rest);
    }
  }
  hwy::FlushStream();
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(AdamWStep);

AdamWConstants MakeAdamWConstants(const AdamWParams& params) {
  TUG_CHECK_GE(params.t, 1);
  const double t = static_cast<double>(params.t);
  const bool v_stays = params.freeze_v_after > 0 && params.t > params.freeze_v_after;
  const double v_t = v_stays ? static_cast<double>(params.freeze_v_after) : t;
  const double beta1 = params.beta1;
  const double beta2 = params.beta2;
  const double lr = params.lr;
  return AdamWConstants{
      .one_minus_beta1 = static_cast<float>(1.0 - beta1),
      .one_minus_beta2 = static_cast<float>(1.0 - beta2),
      .decay = static_cast<float>(1.0 - lr * static_cast<double>(params.weight_decay)),
      .step_size = static_cast<float>(lr / (1.0 - std::pow(beta1, t))),
      .inverse_root_bc2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, v_t))),
      .v_stays = v_stays,
  };
}

void AdamWStep(const AdamWParams& params, const AdamWArgs& args) {
  HWY_DYNAMIC_DISPATCH(AdamWStep)(params, MakeAdamWConstants(params), args);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
