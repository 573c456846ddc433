// SPDX-License-Identifier: Apache-2.0
#include "kernels/fp16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fp16_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/fp16-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

void Fp16FromFloat(const float* HWY_RESTRICT src, Fp16* HWY_RESTRICT dst, int64_t n) {
  const int64_t lanes = FloatLanes();
  for (int64_t i = 0; i < n; i += lanes) StoreUpTo(LoadUpTo(src + i, n - i), dst + i, n - i);
}

void FloatFromFp16(const Fp16* HWY_RESTRICT src, float* HWY_RESTRICT dst, int64_t n) {
  const int64_t lanes = FloatLanes();
  for (int64_t i = 0; i < n; i += lanes) StoreUpTo(LoadUpTo(src + i, n - i), dst + i, n - i);
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(Fp16FromFloat);
HWY_EXPORT(FloatFromFp16);

void Fp16FromFloat(const float* src, Fp16* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Fp16FromFloat)(src, dst, n);
}

void FloatFromFp16(const Fp16* src, float* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FloatFromFp16)(src, dst, n);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
