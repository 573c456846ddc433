// bf16 in vectors, for the *_cpu.cc files that read or write it. Included once per instruction set,
// as simd-inl.h. Integer arithmetic only: the conversions of single instruction sets treat
// denormals and NaNs each in their own way.

#if defined(TUG_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_BF16_INL_H_
#undef TUG_KERNELS_BF16_INL_H_
#else
#define TUG_KERNELS_BF16_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// As many lanes as a FloatVector, half as wide.
using Bf16Tag = hn::Rebind<uint16_t, FloatTag>;
using Bf16Vector = hn::Vec<Bf16Tag>;

// The upper half of each lane is x rounded to nearest, ties to even: adding 0x7FFF, and one more
// where the last kept bit is 1, carries into the kept bits exactly when x must go up (beyond the
// largest bf16 that is infinity). A NaN is cut off instead, with the bit set that makes it quiet
// and keeps it a NaN.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<FloatTag>> RoundUpperHalf(FloatVector x) {
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto tie = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(tie, hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

HWY_INLINE Bf16Vector RoundToBf16(FloatVector x) {
  return hn::TruncateTo(Bf16Tag(), hn::ShiftRight<16>(RoundUpperHalf(x)));
}

// Two vectors rounded and stored side by side; kStream: around the caches, p at the boundary of a
// FloatVector's bytes.
template <bool kStream>
HWY_INLINE void StoreBf16Pair(FloatVector x0, FloatVector x1, uint16_t* p) {
#if HWY_TARGET == HWY_SCALAR
  hn::StoreU(RoundToBf16(x0), Bf16Tag(), p);
  hn::StoreU(RoundToBf16(x1), Bf16Tag(), p + 1);
#else
  const hn::Repartition<uint16_t, FloatTag> d;
  const auto upper_halves =
      hn::ConcatOdd(d, hn::BitCast(d, RoundUpperHalf(x1)), hn::BitCast(d, RoundUpperHalf(x0)));
  if constexpr (kStream) {
    hn::Stream(upper_halves, d, p);
  } else {
    hn::StoreU(upper_halves, d, p);
  }
#endif
}

HWY_INLINE FloatVector WidenBf16(Bf16Vector x) {
  const hn::RebindToUnsigned<FloatTag> du;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(du, x)));
}

// p[0 .. min(count, lanes)), zeros beyond. REQUIRES: count > 0. There are no masked loads and
// stores of 16 bits on AVX2.
HWY_INLINE Bf16Vector LoadUpTo(const uint16_t* p, int64_t count) {
  const Bf16Tag d;
  if (HWY_LIKELY(count >= FloatLanes())) return hn::LoadU(d, p);
  HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)] = {};
  std::memcpy(padded, p, static_cast<size_t>(count) * sizeof(uint16_t));
  return hn::Load(d, padded);
}

// Stores the first min(count, lanes) lanes. REQUIRES: count > 0.
HWY_INLINE void StoreUpTo(Bf16Vector v, uint16_t* p, int64_t count) {
  const Bf16Tag d;
  if (HWY_LIKELY(count >= FloatLanes())) {
    hn::StoreU(v, d, p);
  } else {
    HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)];
    hn::Store(v, d, padded);
    std::memcpy(p, padded, static_cast<size_t>(count) * sizeof(uint16_t));
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
