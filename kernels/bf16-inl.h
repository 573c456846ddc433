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

// x rounded to nearest, ties to even: adding 0x7FFF, and one more where the last kept bit is 1,
// carries into the kept bits exactly when x must go up (beyond the largest bf16 that is infinity).
// A NaN is cut off instead, with the bit set that makes it quiet and keeps it a NaN.
HWY_INLINE Bf16Vector RoundToBf16(FloatVector x) {
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto kept = hn::ShiftRight<16>(bits);
  const auto tie = hn::And(kept, hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(tie, hn::Set(du, 0x7FFF))));
  const auto quiet = hn::Or(kept, hn::Set(du, 0x0040));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(x));
  return hn::TruncateTo(Bf16Tag(), hn::IfThenElse(is_nan, quiet, rounded));
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
