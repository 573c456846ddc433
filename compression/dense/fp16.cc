// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/fp16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compression/dense/unaligned.h"
#include "compression/residual.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/fp16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

using HalfTag = hn::Rebind<hwy::float16_t, FloatTag>;
using HalfBitsTag = hn::Rebind<uint16_t, FloatTag>;
using HalfBits = hn::Vec<HalfBitsTag>;

// x in half precision, rounded to nearest even. REQUIRES: no |x| rounds to 2^16 or more.
HWY_INLINE HalfBits HalfFromFloat(FloatVector x) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // Here Highway truncates, and drops a sign before 0, so x is rounded first: above 2^-14 by adding
  // half a unit of the last place kept (0xFFF, and 1 where that place is odd), below by adding a
  // number whose last place is 2^-24.
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, hn::Abs(x));
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0xFFF)));
  const auto normal = hn::BitCast(d, hn::And(up, hn::Set(du, ~0x1FFFu)));
  const auto shift = hn::Set(d, 0.75f);
  const auto small = hn::Sub(hn::Add(hn::Abs(x), shift), shift);
  const auto rounded = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-14f)), small, normal);
  const auto sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(hn::BitCast(du, x)));
  const auto half = hn::BitCast(HalfBitsTag(), hn::DemoteTo(HalfTag(), rounded));
  return hn::Or(half, hn::TruncateTo(HalfBitsTag(), sign));
#else
  return hn::BitCast(HalfBitsTag(), hn::DemoteTo(HalfTag(), x));
#endif
}

HWY_INLINE FloatVector FloatFromHalf(HalfBits half) {
  const auto x = hn::PromoteTo(FloatTag(), hn::BitCast(HalfTag(), half));
#if HWY_TARGET == HWY_SCALAR
  // This target converts infinities and NaNs to numbers of 2^16 and more.
  const FloatTag d;
  const auto infinity = hn::BitCast(d, hn::Set(IntTag(), 0x7F800000));
  return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 0x1p16f)), infinity, x);
#else
  return x;
#endif
}

// Store and load the first min(count, lanes) lanes, through a copy.
HWY_INLINE void StoreHalves(HalfBits half, std::byte* to, int64_t count) {
  HWY_ALIGN uint16_t copy[hn::MaxLanes(HalfBitsTag())];
  const auto n = static_cast<size_t>(std::min(count, FloatLanes()));
  hn::Store(half, HalfBitsTag(), copy);
  std::memcpy(to, copy, n * sizeof(uint16_t));
}
HWY_INLINE HalfBits LoadHalves(const std::byte* from, int64_t count) {
  HWY_ALIGN uint16_t copy[hn::MaxLanes(HalfBitsTag())] = {};
  const auto n = static_cast<size_t>(std::min(count, FloatLanes()));
  std::memcpy(copy, from, n * sizeof(uint16_t));
  return hn::Load(HalfBitsTag(), copy);
}

// residual += x. Returns the bits of the largest magnitude of the sums.
HWY_INLINE int32_t AddAndFindLargestBits(const float* HWY_RESTRICT x, int64_t n,
                                         float* HWY_RESTRICT residual) {
  auto largest = hn::Zero(IntTag());
  const int64_t lanes = FloatLanes();
  for (int64_t i = 0; i < n; i += lanes) {
    const auto sum = hn::Add(LoadUpTo(residual + i, n - i), LoadUpTo(x + i, n - i));
    largest = LargestMagnitude(largest, sum);
    StoreUpTo(sum, residual + i, n - i);
  }
  return hn::GetLane(hn::MaxOfLanes(IntTag(), largest));
}

// Encodes x; kSubtract: also subtracts the decoded values from `residual`, which is x.
template <bool kSubtract>
HWY_INLINE void Convert(const float* x, int64_t n, float scale, float* residual, std::byte* out) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto largest = hn::Set(d, 0x1.FFCp127f);
  const auto smallest = hn::Neg(largest);
  const auto down = hn::Set(d, 1.0f / scale), up = hn::Set(d, scale);
  const auto step = [&](int64_t i, int64_t left) HWY_ATTR {
    const auto value = LoadUpTo(x + i, left);
    const auto half = HalfFromFloat(hn::Mul(hn::Max(hn::Min(value, largest), smallest), down));
    StoreHalves(half, out + 2 * i, left);
    if constexpr (kSubtract) {
      StoreUpTo(hn::Sub(value, hn::Mul(FloatFromHalf(half), up)), residual + i, left);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(i, lanes);
  if (i < n) step(i, n - i);
}

// A power of two whose reciprocal is finite too: 2^-127 is the smallest.
HWY_INLINE float ScaleOf(int32_t largest_bits) {
  const int exponent = largest_bits == 0 ? 0 : std::ilogb(std::bit_cast<float>(largest_bits));
  return std::ldexp(1.0f, std::max(exponent - 14, -127));
}

bool EncodeFp16(const float* x, int64_t n, std::byte* out) {
  const int32_t largest_bits = LargestBits(x, n);
  if (largest_bits >= kInfinityBits) return false;
  const float scale = ScaleOf(largest_bits);
  std::memcpy(out, &scale, sizeof(scale));
  Convert<false>(x, n, scale, nullptr, out + sizeof(scale));
  return true;
}

bool EncodeFp16WithResidual(const float* x, float* residual, int64_t n, std::byte* out) {
  const int32_t largest_bits = AddAndFindLargestBits(x, n, residual);
  if (largest_bits >= kInfinityBits) return false;
  const float scale = ScaleOf(largest_bits);
  std::memcpy(out, &scale, sizeof(scale));
  Convert<true>(residual, n, scale, residual, out + sizeof(scale));
  return true;
}

// True if all decoded numbers are finite, and so no half is infinite or NaN.
template <DecodeTo kTo>
HWY_INLINE bool DecodeHalves(const std::byte* in, float scale, int64_t n, float* x) {
  const int64_t lanes = FloatLanes();
  const auto up = hn::Set(FloatTag(), scale);
  auto largest = hn::Zero(IntTag());
  const auto step = [&](int64_t i, int64_t left) HWY_ATTR {
    auto value = hn::Mul(FloatFromHalf(LoadHalves(in + 2 * i, left)), up);
    largest = LargestMagnitude(largest, value);
    if constexpr (kTo == DecodeTo::kAdd) value = hn::Add(LoadUpTo(x + i, left), value);
    if constexpr (kTo == DecodeTo::kSubtract) value = hn::Sub(LoadUpTo(x + i, left), value);
    StoreUpTo(value, x + i, left);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(i, lanes);
  if (i < n) step(i, n - i);
  return IsFinite(largest);
}

bool DecodeFp16(const std::byte* in, float scale, DecodeTo to, int64_t n, float* x) {
  switch (to) {
    case DecodeTo::kStore:
      return DecodeHalves<DecodeTo::kStore>(in, scale, n, x);
    case DecodeTo::kAdd:
      return DecodeHalves<DecodeTo::kAdd>(in, scale, n, x);
    case DecodeTo::kSubtract:
      return DecodeHalves<DecodeTo::kSubtract>(in, scale, n, x);
  }
  return false;
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeFp16);
HWY_EXPORT(EncodeFp16WithResidual);
HWY_EXPORT(DecodeFp16);

size_t Fp16Codec::MaxEncodedBytes(size_t elements) const { return sizeof(float) + 2 * elements; }

size_t Fp16Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const bool finite = HWY_DYNAMIC_DISPATCH(EncodeFp16)(
      elements.data(), static_cast<int64_t>(elements.size()), out.data());
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

size_t Fp16Codec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& /*scratch*/) const {
  const bool finite = EncodeSum(elements, residual, [&] {
    return HWY_DYNAMIC_DISPATCH(EncodeFp16WithResidual)(
        elements.data(), residual.data(), static_cast<int64_t>(elements.size()), out.data());
  });
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool Fp16Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  const auto scale = LoadOnce<float>(encoded.data());
  if (!(scale > 0.0f)) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeFp16)(encoded.data() + sizeof(scale), scale, to,
                                          static_cast<int64_t>(elements.size()), elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
