// SPDX-License-Identifier: Apache-2.0
// Vector helpers shared by the *_cpu.cc files. Included once per instruction set, after
// hwy/highway.h, outside any namespace (see hwy/foreach_target.h for the pattern).
//
// Rule that makes bits independent of position: the last elements of an array pass through the same
// vector instructions as the others, loaded with zeros beyond the end and stored up to the end. No
// scalar tail loops.

#if defined(TUG_KERNELS_SIMD_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_SIMD_SIMD_INL_H_
#undef TUG_KERNELS_SIMD_SIMD_INL_H_
#else
#define TUG_KERNELS_SIMD_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

HWY_INLINE int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// Loads p[0 .. min(count, lanes)); zeros beyond. REQUIRES: count > 0.
HWY_INLINE FloatVector LoadUpTo(const float* p, int64_t count) {
  const FloatTag d;
  if (HWY_LIKELY(count >= FloatLanes())) return hn::LoadU(d, p);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
}

// Stores the first min(count, lanes) lanes. REQUIRES: count > 0.
HWY_INLINE void StoreUpTo(FloatVector v, float* p, int64_t count) {
  const FloatTag d;
  if (HWY_LIKELY(count >= FloatLanes())) {
    hn::StoreU(v, d, p);
  } else {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
  }
}

// Returns v in the first `count` lanes, `other` beyond.
HWY_INLINE FloatVector KeepUpTo(FloatVector v, int64_t count, FloatVector other) {
  const FloatTag d;
  if (HWY_LIKELY(count >= FloatLanes())) return v;
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), v, other);
}

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVector = hn::Vec<IntTag>;

// The larger of `largest` and the bits of |x|, per lane. Infinities and NaNs have larger bits than
// any finite number.
HWY_INLINE IntVector LargestMagnitude(IntVector largest, FloatVector x) {
  return hn::Max(largest, hn::BitCast(IntTag(), hn::Abs(x)));
}

// Whether every x passed to LargestMagnitude was finite.
HWY_INLINE bool IsFinite(IntVector largest) {
  const IntTag di;
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7F800000)));
}

HWY_INLINE float SumLanes(FloatVector v) {
  const FloatTag d;
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// e^x, relative error below 3e-7; 0 below -87.3, infinity above 88.4, NaN for NaN (hwy/contrib/math
// gives 0 there, which would hide a broken gradient). Cephes' polynomial after x = n ln 2 + r, |r|
// <= ln 2 / 2.
HWY_INLINE FloatVector Exp(FloatVector x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto set = [](float value) HWY_ATTR { return hn::Set(FloatTag(), value); };
  const auto below = hn::Lt(x, set(-87.3f));
  x = hn::IfThenElse(hn::Gt(x, set(89.0f)), set(89.0f), x);
  // Adding this to a number of up to 2^22 leaves the nearest whole number (ties to even) in the low
  // bits, as an integer: cheaper than rounding and converting.
  const auto round = set(12582912.0f);  // 1.5 * 2^23
  const auto shifted = hn::Add(hn::Mul(x, set(1.44269504088896341f)), round);
  const auto n = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(n, set(0.693359375f), x);
  r = hn::NegMulAdd(n, set(-2.12194440e-4f), r);
  auto y = set(1.9875691500e-4f);
  y = hn::MulAdd(y, r, set(1.3981999507e-3f));
  y = hn::MulAdd(y, r, set(8.3334519073e-3f));
  y = hn::MulAdd(y, r, set(4.1665795894e-2f));
  y = hn::MulAdd(y, r, set(1.6666665459e-1f));
  y = hn::MulAdd(y, r, set(5.0000001201e-1f));
  y = hn::MulAdd(y, hn::Mul(r, r), hn::Add(r, set(1.0f)));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::IfThenZeroElse(below, hn::Mul(y, hn::BitCast(d, power)));
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
