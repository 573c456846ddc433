// SPDX-License-Identifier: Apache-2.0
// FP16 in vectors, for *_cpu.cc files. Included once per instruction set, like simd-inl.h. Uses
// integer and FP32 arithmetic only, because conversion instructions, and their emulation where they
// are missing, differ in denormals and NaNs.

#if defined(TUG_KERNELS_SIMD_FP16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_SIMD_FP16_INL_H_
#undef TUG_KERNELS_SIMD_FP16_INL_H_
#else
#define TUG_KERNELS_SIMD_FP16_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/fp16.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// As many lanes as FloatVector, each half as wide.
using Fp16Tag = hn::Rebind<uint16_t, FloatTag>;

// Moves FP16's exponent and fraction to where FP32 has them, which gives a number 2^112 too small,
// denormals included; one exact multiplication corrects it. Infinities and NaNs get FP32's largest
// exponent.
HWY_INLINE FloatVector WidenFp16(hn::Vec<Fp16Tag> x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::PromoteTo(du, x);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
  const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)),
                              hn::BitCast(d, hn::Set(du, 0x77800000u)));  // 2^112
  const auto special = hn::Or(hn::BitCast(du, scaled), hn::Set(du, 0x7F800000u));
  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7C00));
  const auto quiet = hn::Or(special, hn::IfThenElseZero(is_nan, hn::Set(du, 0x00400000u)));
  const auto wide =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7BFF)), quiet, hn::BitCast(du, scaled));
  return hn::BitCast(d, hn::Or(wide, sign));
}

// Handles three ranges of magnitudes: numbers that round to a normal FP16 (by the carry of an
// integer addition, as for bf16), numbers that round to a denormal one (by adding a number whose
// last bit is the last bit of a denormal), and infinities and NaNs.
HWY_INLINE hn::Vec<Fp16Tag> NarrowToFp16(FloatVector x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));

  // Changes the exponent's bias from 127 to 15, and adds 0xFFF, plus one if the last kept bit is 1.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(magnitude, hn::Set(du, 0xC8000FFFu)), odd);
  const auto normal = hn::ShiftRight<13>(rounded);

  const auto half = hn::Set(du, 0x3F000000u);  // 0.5: its last bit is worth 2^-24
  const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, half));
  const auto denormal = hn::Sub(hn::BitCast(du, sum), half);

  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7F800000u));
  const auto special = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), hn::Set(du, 0x7C00));

  const auto finite =
      hn::IfThenElse(hn::Gt(hn::Set(du, 0x38800000u), magnitude), denormal, normal);  // 2^-14
  // 65520 and above round beyond 65504.
  const auto narrow = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477FEFFFu)), special, finite);
  return hn::TruncateTo(Fp16Tag(), hn::Or(narrow, sign));
}

// Widens p[0 .. min(count, lanes)); zeros beyond. REQUIRES: count > 0. Like the overload for Bf16.
HWY_INLINE FloatVector LoadUpTo(const Fp16* p, int64_t count) {
  const Fp16Tag d;
#if HWY_TARGET != HWY_SCALAR
  const auto* bits = reinterpret_cast<const uint16_t*>(p);
  if (HWY_LIKELY(count >= FloatLanes())) return WidenFp16(hn::LoadU(d, bits));
#endif
  HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)] = {};
  std::memcpy(padded, p, static_cast<size_t>(std::min(count, FloatLanes())) * sizeof(uint16_t));
  return WidenFp16(hn::Load(d, padded));
}

// Stores the first min(count, lanes) lanes, rounded. REQUIRES: count > 0.
HWY_INLINE void StoreUpTo(FloatVector v, Fp16* p, int64_t count) {
  const Fp16Tag d;
  const auto narrow = NarrowToFp16(v);
#if HWY_TARGET != HWY_SCALAR
  auto* bits = reinterpret_cast<uint16_t*>(p);
  if (HWY_LIKELY(count >= FloatLanes())) {
    hn::StoreU(narrow, d, bits);
    return;
  }
#endif
  HWY_ALIGN uint16_t padded[HWY_MAX_BYTES / sizeof(uint16_t)];
  hn::Store(narrow, d, padded);
  std::memcpy(p, padded, static_cast<size_t>(std::min(count, FloatLanes())) * sizeof(uint16_t));
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
