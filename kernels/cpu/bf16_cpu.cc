// SPDX-License-Identifier: Apache-2.0
#include "kernels/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bf16_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

void Bf16FromFloat(const float* HWY_RESTRICT src, Bf16* HWY_RESTRICT dst, int64_t n) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    StoreBf16Pair</*kStream=*/false>(LoadUpTo(src + i, lanes), LoadUpTo(src + i + lanes, lanes),
                                     dst + i);
  }
  for (; i < n; i += lanes) StoreUpTo(LoadUpTo(src + i, n - i), dst + i, n - i);
}

void FloatFromBf16(const Bf16* HWY_RESTRICT src, float* HWY_RESTRICT dst, int64_t n) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreUpTo(LoadUpTo(src + i, lanes), dst + i, lanes);
  if (i < n) StoreUpTo(LoadUpTo(src + i, n - i), dst + i, n - i);
}

template <bool kAdd>
HWY_INLINE bool WidenAndCheck(const Bf16* HWY_RESTRICT src, float* HWY_RESTRICT dst, int64_t n) {
  auto largest = hn::Zero(IntTag());
  const auto step = [&](int64_t i, int64_t left) HWY_ATTR {
    auto x = LoadUpTo(src + i, left);
    largest = LargestMagnitude(largest, x);
    if constexpr (kAdd) x = hn::Add(LoadUpTo(dst + i, left), x);
    StoreUpTo(x, dst + i, left);
  };
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(i, lanes);
  if (i < n) step(i, n - i);
  return IsFinite(largest);
}

bool CopyAndCheckBf16(const Bf16* src, float* dst, int64_t n) {
  return WidenAndCheck<false>(src, dst, n);
}

bool AddAndCheckBf16(const Bf16* src, float* acc, int64_t n) {
  return WidenAndCheck<true>(src, acc, n);
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(Bf16FromFloat);
HWY_EXPORT(FloatFromBf16);
HWY_EXPORT(CopyAndCheckBf16);
HWY_EXPORT(AddAndCheckBf16);

void Bf16FromFloat(const float* src, Bf16* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Bf16FromFloat)(src, dst, n);
}

void FloatFromBf16(const Bf16* src, float* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatFromBf16)(src, dst, n);
}

bool CopyAndCheckBf16(const Bf16* src, float* dst, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(CopyAndCheckBf16)(src, dst, n);
}

bool AddAndCheckBf16(const Bf16* src, float* acc, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(AddAndCheckBf16)(src, acc, n);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
