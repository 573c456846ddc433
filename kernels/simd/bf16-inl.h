// SPDX-License-Identifier: Apache-2.0
// bf16 in vectors, for *_cpu.cc files. Included once per instruction set, like simd-inl.h. Uses
// integer arithmetic only, because conversion instructions differ between instruction sets in
// denormals and NaNs.

#if defined(TUG_KERNELS_SIMD_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_SIMD_BF16_INL_H_
#undef TUG_KERNELS_SIMD_BF16_INL_H_
#else
#define TUG_KERNELS_SIMD_BF16_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/bf16.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// As many lanes as FloatVector, each half as wide.
using Bf16Tag = hn::Rebind<uint16_t, FloatTag>;
using Bf16Vector = hn::Vec<Bf16Tag>;
using UpperHalves = hn::Vec<hn::RebindToUnsigned<FloatTag>>;

// Rounds x to nearest, ties to even, in the upper half of each lane: adding 0x7FFF, plus one if the
// last kept bit is 1, carries into the kept bits exactly when x must go up (beyond the largest bf16
// to infinity). A NaN is truncated instead, with its quiet bit set, which keeps it a NaN.
HWY_INLINE UpperHalves RoundUpperHalf(FloatVector x) {
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::TestBit(bits, hn::Set(du, 0x10000));
  const auto rounded = hn::Add(bits, hn::IfThenElse(odd, hn::Set(du, 0x8000), hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

HWY_INLINE FloatVector WidenBf16(Bf16Vector x) {
  const hn::RebindToUnsigned<FloatTag> du;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(du, x)));
}

// Widens p[0 .. min(count, lanes)); zeros beyond. REQUIRES: count > 0. Overload of the one for
// float, so that one template serves both types. Without masked 16-bit loads, and for a single lane
// (which is not a vector that may alias), a partial vector is copied first.
HWY_INLINE FloatVector LoadUpTo(const Bf16* p, int64_t count) {
  const Bf16Tag d;
#if HWY_TARGET != HWY_SCALAR
  const auto* bits = reinterpret_cast<const uint16_t*>(p);
  if (HWY_LIKELY(count >= FloatLanes())) return WidenBf16(hn::LoadU(d, bits));
#endif
#if HWY_TARGET <= HWY_AVX3
  return WidenBf16(hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, bits));
#else
  HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)] = {};
  std::memcpy(padded, p, static_cast<size_t>(std::min(count, FloatLanes())) * sizeof(uint16_t));
  return WidenBf16(hn::Load(d, padded));
#endif
}

// Stores the upper halves of the first min(count, lanes) lanes. REQUIRES: count > 0.
HWY_INLINE void StoreUpperHalves(UpperHalves v, Bf16* p, int64_t count) {
  const Bf16Tag d;
  const Bf16Vector upper = hn::TruncateTo(d, hn::ShiftRight<16>(v));
#if HWY_TARGET != HWY_SCALAR
  auto* bits = reinterpret_cast<uint16_t*>(p);
  if (HWY_LIKELY(count >= FloatLanes())) {
    hn::StoreU(upper, d, bits);
    return;
  }
#endif
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(upper, hn::FirstN(d, static_cast<size_t>(count)), d, bits);
#else
  HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)];
  hn::Store(upper, d, padded);
  std::memcpy(p, padded, static_cast<size_t>(std::min(count, FloatLanes())) * sizeof(uint16_t));
#endif
}

// Stores the first min(count, lanes) lanes, rounded. REQUIRES: count > 0.
HWY_INLINE void StoreUpTo(FloatVector v, Bf16* p, int64_t count) {
  StoreUpperHalves(RoundUpperHalf(v), p, count);
}

HWY_INLINE FloatVector WidenUpperHalves(UpperHalves v) {
  const hn::RebindToUnsigned<FloatTag> du;
  return hn::BitCast(FloatTag(), hn::And(v, hn::Set(du, 0xFFFF0000u)));
}

// v after a round trip through an element of type T: rounded for Bf16, unchanged for float.
template <typename T>
HWY_INLINE FloatVector AsStored(FloatVector v) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return WidenUpperHalves(RoundUpperHalf(v));
  } else {
    return v;
  }
}

// StoreUpTo, then returns AsStored of all lanes.
HWY_INLINE FloatVector StoreAndReload(FloatVector v, Bf16* p, int64_t count) {
  const UpperHalves rounded = RoundUpperHalf(v);
  StoreUpperHalves(rounded, p, count);
  return WidenUpperHalves(rounded);
}
HWY_INLINE FloatVector StoreAndReload(FloatVector v, float* p, int64_t count) {
  StoreUpTo(v, p, count);
  return v;
}

// Stores two vectors, rounded, in adjacent positions. kStream: bypasses the caches; p must be
// aligned to the bytes of a FloatVector.
template <bool kStream>
HWY_INLINE void StoreBf16Pair(FloatVector x0, FloatVector x1, Bf16* p) {
#if HWY_TARGET == HWY_SCALAR
  StoreUpTo(x0, p, 1);
  StoreUpTo(x1, p + 1, 1);
#else
  auto* const bits = reinterpret_cast<uint16_t*>(p);
  const hn::Repartition<uint16_t, FloatTag> d;
  const auto upper_halves =
      hn::ConcatOdd(d, hn::BitCast(d, RoundUpperHalf(x1)), hn::BitCast(d, RoundUpperHalf(x0)));
  if constexpr (kStream) {
    hn::Stream(upper_halves, d, bits);
  } else {
    hn::StoreU(upper_halves, d, bits);
  }
#endif
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
