// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/one_bit.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compression/dense/unaligned.h"
#include "compression/residual.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/one_bit.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "compression/dense/groups-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

struct OneBitFormat {
  static constexpr int64_t kGroup = OneBitCodec::kGroup;

  static int64_t GroupBytes(int64_t n) { return 4 + (n + 63) / 64 * 8; }

  // The mean is summed in 64 places, which are then added by halves: the same bits on every
  // instruction set. It sums x / 512, so that no sum overflows.
  HWY_INLINE bool EncodeGroup(const float* x, int64_t n, int64_t /*first*/, std::byte* out) const {
    const FloatTag d;
    const IntTag di;
    constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
    constexpr int64_t kVectors = 64 / kLanes;
    const auto part = hn::Set(d, 1.0f / kGroup);
    FloatVector sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    std::byte* words = out + sizeof(float);
    for (int64_t i = 0; i < n; i += 64, words += 8) {
      uint64_t word = 0;
      for (int64_t v = 0; v < kVectors; ++v) {
        const auto value = hn::LoadU(d, x + i + v * kLanes);
        sums[v] = hn::Add(sums[v], hn::Mul(hn::Abs(value), part));
        word |= WordOfMask(di, hn::Lt(hn::BitCast(di, value), hn::Zero(di)), v * kLanes);
      }
      std::memcpy(words, &word, sizeof(word));
    }
    HWY_ALIGN float places[64];
    for (int64_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d, places + v * kLanes);
    for (int half = 32; half >= 1; half /= 2) {
      for (int i = 0; i < half; ++i) places[i] += places[i + half];
    }
    constexpr float kLargest = std::numeric_limits<float>::max();
    if (!(places[0] <= kLargest)) return false;
    const float mean = places[0] * (static_cast<float>(kGroup) / static_cast<float>(n));
    const float scale = std::min(mean, kLargest);
    std::memcpy(out, &scale, sizeof(scale));
    return true;
  }

  template <DecodeTo kTo>
  HWY_INLINE bool DecodeGroup(const std::byte* in, int64_t n, float* x) const {
    const FloatTag d;
    const auto scale = LoadOnce<float>(in);
    if (!(scale >= 0.0f && scale <= std::numeric_limits<float>::max())) return false;
    const auto above = hn::Set(d, scale);
    const auto below = hn::Neg(above);
    constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
    const std::byte* words = in + sizeof(float);
    for (int64_t i = 0; i < n; i += 64, words += 8) {
      const auto word = LoadOnce<uint64_t>(words);
      for (int64_t j = 0; j < 64; j += kLanes) {
        float* const to = x + i + j;
        const auto value = hn::IfThenElse(MaskOfWord(d, word, j), below, above);
        hn::StoreU(Place<kTo>(value, to), d, to);
      }
    }
    return true;
  }
};

bool EncodeOneBit(const float* x, int64_t n, std::byte* out) {
  return EncodeGroups(OneBitFormat(), x, n, out);
}

bool EncodeOneBitWithResidual(const float* x, float* residual, int64_t n, std::byte* out) {
  return EncodeGroupsWithResidual(OneBitFormat(), x, residual, n, out);
}

bool DecodeOneBit(const std::byte* in, DecodeTo to, int64_t n, float* x) {
  return DecodeGroups(OneBitFormat(), in, to, n, x);
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeOneBit);
HWY_EXPORT(EncodeOneBitWithResidual);
HWY_EXPORT(DecodeOneBit);

size_t OneBitCodec::MaxEncodedBytes(size_t elements) const {
  const size_t groups = (elements + kGroup - 1) / kGroup;
  const size_t words = (elements + 63) / 64;
  return groups * sizeof(float) + words * sizeof(uint64_t);
}

size_t OneBitCodec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                           std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  const auto n = static_cast<int64_t>(elements.size());
  if (!HWY_DYNAMIC_DISPATCH(EncodeOneBit)(elements.data(), n, out.data())) return 0;
  return MaxEncodedBytes(elements.size());
}

size_t OneBitCodec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                       std::span<float> residual, std::span<std::byte> out,
                                       CodecScratch& /*scratch*/) const {
  const bool finite = EncodeSum(elements, residual, [&] {
    return HWY_DYNAMIC_DISPATCH(EncodeOneBitWithResidual)(
        elements.data(), residual.data(), static_cast<int64_t>(elements.size()), out.data());
  });
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

bool OneBitCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                         std::span<float> elements) const {
  if (encoded.size() != MaxEncodedBytes(elements.size())) return false;
  return HWY_DYNAMIC_DISPATCH(DecodeOneBit)(encoded.data(), to,
                                            static_cast<int64_t>(elements.size()), elements.data());
}

}  // namespace tug
#endif  // HWY_ONCE
