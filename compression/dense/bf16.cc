// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/bf16.h"

#include "compression/residual.h"
#include "kernels/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/bf16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::Bf16;
using namespace kernels::HWY_NAMESPACE;  // NOLINT: the vectors' names, in a namespace of their own

// Clamps x to the range of bf16.
HWY_INLINE FloatVector ClampToBf16(FloatVector x) {
  const FloatTag d;
  const auto largest = hn::BitCast(d, hn::Set(IntTag(), 0x7F7F0000));
  return hn::Max(hn::Min(x, largest), hn::Neg(largest));
}

// x[i], ..., plus the residual if kResidual.
template <bool kResidual>
HWY_INLINE FloatVector LoadSum(const float* x, const float* residual, int64_t i, int64_t count) {
  const auto value = LoadUpTo(x + i, count);
  if constexpr (kResidual) return hn::Add(LoadUpTo(residual + i, count), value);
  return value;
}

template <bool kResidual>
HWY_INLINE bool EncodeSums(const float* HWY_RESTRICT x, float* HWY_RESTRICT residual, int64_t n,
                           Bf16* HWY_RESTRICT out) {
  const int64_t lanes = FloatLanes();
  auto largest0 = hn::Zero(IntTag()), largest1 = largest0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto x0 = LoadSum<kResidual>(x, residual, i, lanes);
    const auto x1 = LoadSum<kResidual>(x, residual, i + lanes, lanes);
    largest0 = LargestMagnitude(largest0, x0);
    largest1 = LargestMagnitude(largest1, x1);
    const auto c0 = ClampToBf16(x0), c1 = ClampToBf16(x1);
    StoreBf16Pair</*kStream=*/false>(c0, c1, out + i);
    if constexpr (kResidual) {
      StoreUpTo(hn::Sub(x0, AsStored<Bf16>(c0)), residual + i, lanes);
      StoreUpTo(hn::Sub(x1, AsStored<Bf16>(c1)), residual + i + lanes, lanes);
    }
  }
  for (; i < n; i += lanes) {
    const auto value = LoadSum<kResidual>(x, residual, i, n - i);
    largest0 = LargestMagnitude(largest0, value);
    const auto stored = StoreAndReload(ClampToBf16(value), out + i, n - i);
    if constexpr (kResidual) StoreUpTo(hn::Sub(value, stored), residual + i, n - i);
  }
  return IsFinite(hn::Max(largest0, largest1));
}

bool EncodeBf16(const float* x, int64_t n, Bf16* out) {
  return EncodeSums<false>(x, nullptr, n, out);
}

bool EncodeBf16WithResidual(const float* x, float* residual, int64_t n, Bf16* out) {
  return EncodeSums<true>(x, residual, n, out);
}

bool SubtractBf16(const Bf16* HWY_RESTRICT in, int64_t n, float* HWY_RESTRICT x) {
  auto largest = hn::Zero(IntTag());
  const int64_t lanes = FloatLanes();
  for (int64_t i = 0; i < n; i += lanes) {
    const auto value = LoadUpTo(in + i, n - i);
    largest = LargestMagnitude(largest, value);
    StoreUpTo(hn::Sub(LoadUpTo(x + i, n - i), value), x + i, n - i);
  }
  return IsFinite(largest);
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeBf16);
HWY_EXPORT(EncodeBf16WithResidual);
HWY_EXPORT(SubtractBf16);

size_t Bf16Codec::MaxEncodedBytes(size_t elements) const { return 2 * elements; }

size_t Bf16Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const bool finite =
      HWY_DYNAMIC_DISPATCH(EncodeBf16)(elements.data(), static_cast<int64_t>(elements.size()),
                                       reinterpret_cast<kernels::Bf16*>(out.data()));
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

size_t Bf16Codec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& /*scratch*/) const {
  const bool finite = EncodeSum(elements, residual, [&] {
    return HWY_DYNAMIC_DISPATCH(EncodeBf16WithResidual)(
        elements.data(), residual.data(), static_cast<int64_t>(elements.size()),
        reinterpret_cast<kernels::Bf16*>(out.data()));
  });
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool Bf16Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  const auto* const halves = reinterpret_cast<const kernels::Bf16*>(encoded.data());
  const auto n = static_cast<int64_t>(elements.size());
  if (to == DecodeTo::kStore) return kernels::CopyAndCheckBf16(halves, elements.data(), n);
  if (to == DecodeTo::kAdd) return kernels::AddAndCheckBf16(halves, elements.data(), n);
  return HWY_DYNAMIC_DISPATCH(SubtractBf16)(halves, n, elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
