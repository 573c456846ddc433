// SPDX-License-Identifier: Apache-2.0
#include "compression/dense/int8.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "compression/dense/unaligned.h"
#include "compression/residual.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/dense/int8.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

#ifndef TUG_COMPRESSION_INT8_ONCE_
#define TUG_COMPRESSION_INT8_ONCE_
namespace tug {
namespace {

using Limits = std::numeric_limits<float>;

constexpr float kSmallestScale = Limits::min();
constexpr float kLargestScale = 0x1.020406p+121f;  // the largest whose 127-fold is finite
static_assert(127.0f * kLargestScale <= Limits::max());
constexpr size_t kScaleBytes = sizeof(float);

// Added to a number below 2^22, it leaves the nearest whole number, ties to even, in the low bits.
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

// Scale and bytes of a group in an encoding.
template <typename Byte>
struct GroupOf {
  Byte* scale;
  Byte* bytes;
};

template <typename Byte>
GroupOf<Byte> GroupAt(std::span<Byte> encoded, size_t elements, size_t begin) {
  const size_t groups = (elements + kInt8Group - 1) / kInt8Group;
  return {encoded.data() + begin / kInt8Group * kScaleBytes,
          encoded.data() + groups * kScaleBytes + begin};
}

}  // namespace
}  // namespace tug
#endif  // TUG_COMPRESSION_INT8_ONCE_

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::FloatLanes;
using kernels::HWY_NAMESPACE::FloatTag;
using kernels::HWY_NAMESPACE::FloatVector;
using kernels::HWY_NAMESPACE::IntTag;
using kernels::HWY_NAMESPACE::IntVector;
using kernels::HWY_NAMESPACE::LargestMagnitude;

constexpr auto kGroup = static_cast<int64_t>(kInt8Group);

// Functions on a group process all 256 elements; for a short group, a copy padded with zeros.

// Scale for the bits of the largest magnitudes; NaN if one is not finite.
HWY_INLINE float ScaleOf(IntVector largest) {
  const auto magnitude = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(IntTag(), largest)));
  if (!(magnitude <= Limits::max())) return Limits::quiet_NaN();
  return std::min(std::max(magnitude / 127.0f, kSmallestScale), kLargestScale);
}

// Stores the bytes of `elements`, and returns them as whole numbers. `inverse` is 1 / scale.
HWY_INLINE FloatVector StoreBytes(FloatVector elements, FloatVector inverse, std::byte* bytes) {
  const auto round = hn::Set(FloatTag(), kRound);
  const auto shifted = hn::Add(hn::Mul(elements, inverse), round);
  const hn::Rebind<uint8_t, FloatTag> narrow;
  const hn::RebindToUnsigned<FloatTag> wide;
  hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(wide, shifted)), narrow,
             reinterpret_cast<uint8_t*>(bytes));
  return hn::Sub(shifted, round);
}

HWY_INLINE bool EncodeGroup(const float* HWY_RESTRICT x, GroupOf<std::byte> group) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  auto largest0 = hn::Zero(IntTag());
  auto largest1 = hn::Zero(IntTag());
  for (int64_t i = 0; i < kGroup; i += 2 * lanes) {
    largest0 = LargestMagnitude(largest0, hn::LoadU(d, x + i));
    largest1 = LargestMagnitude(largest1, hn::LoadU(d, x + i + lanes));
  }
  const float scale = ScaleOf(hn::Max(largest0, largest1));
  std::memcpy(group.scale, &scale, kScaleBytes);
  if (scale != scale) {
    std::memset(group.bytes, 0, kInt8Group);
    return false;
  }
  const auto inverse = hn::Set(d, 1.0f / scale);
  for (int64_t i = 0; i < kGroup; i += lanes) {
    StoreBytes(hn::LoadU(d, x + i), inverse, group.bytes + i);
  }
  return true;
}

// Encodes x + residual, and leaves the encoding error in `residual`.
HWY_INLINE bool EncodeGroupWithResidual(const float* HWY_RESTRICT x, float* HWY_RESTRICT residual,
                                        GroupOf<std::byte> group) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  HWY_ALIGN float sum[kInt8Group];
  auto largest = hn::Zero(IntTag());
  for (int64_t i = 0; i < kGroup; i += lanes) {
    const auto p = hn::Add(hn::LoadU(d, residual + i), hn::LoadU(d, x + i));
    hn::Store(p, d, sum + i);
    largest = LargestMagnitude(largest, p);
  }
  const float scale = ScaleOf(largest);
  if (scale != scale) return false;
  std::memcpy(group.scale, &scale, kScaleBytes);
  const auto inverse = hn::Set(d, 1.0f / scale);
  for (int64_t i = 0; i < kGroup; i += lanes) {
    const auto p = hn::Load(d, sum + i);
    const auto decoded = hn::Mul(StoreBytes(p, inverse, group.bytes + i), hn::Set(d, scale));
    hn::StoreU(hn::Sub(p, decoded), d, residual + i);
  }
  return true;
}

template <DecodeTo kTo>
HWY_INLINE void DecodeGroup(float scale, const std::byte* HWY_RESTRICT bytes,
                            float* HWY_RESTRICT x) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const hn::Rebind<int8_t, FloatTag> narrow;
  for (int64_t i = 0; i < kGroup; i += lanes) {
    const auto byte = hn::LoadU(narrow, reinterpret_cast<const int8_t*>(bytes + i));
    const auto whole = hn::Max(hn::PromoteTo(IntTag(), byte), hn::Set(IntTag(), -127));
    auto decoded = hn::Mul(hn::ConvertTo(d, whole), hn::Set(d, scale));
    if constexpr (kTo == DecodeTo::kAdd) decoded = hn::Add(hn::LoadU(d, x + i), decoded);
    if constexpr (kTo == DecodeTo::kSubtract) decoded = hn::Sub(hn::LoadU(d, x + i), decoded);
    hn::StoreU(decoded, d, x + i);
  }
}

// False if an element is not finite; the other groups are encoded nevertheless.
bool EncodeInt8Groups(std::span<const float> elements, std::span<std::byte> out) {
  bool finite = true;
  const size_t n = elements.size();
  size_t begin = 0;
  for (; begin + kInt8Group <= n; begin += kInt8Group) {
    finite &= EncodeGroup(elements.data() + begin, GroupAt(out, n, begin));
  }
  if (begin == n) return finite;
  float last[kInt8Group] = {};
  std::byte bytes[kInt8Group];
  const GroupOf<std::byte> group = GroupAt(out, n, begin);
  std::memcpy(last, elements.data() + begin, (n - begin) * sizeof(float));
  finite &= EncodeGroup(last, {group.scale, bytes});
  std::memcpy(group.bytes, bytes, n - begin);
  return finite;
}

// False if a sum is not finite: `residual` is then unusable.
bool EncodeInt8GroupsWithResidual(std::span<const float> elements, std::span<float> residual,
                                  std::span<std::byte> out) {
  const size_t n = elements.size();
  size_t begin = 0;
  for (; begin + kInt8Group <= n; begin += kInt8Group) {
    if (!EncodeGroupWithResidual(elements.data() + begin, residual.data() + begin,
                                 GroupAt(out, n, begin))) {
      return false;
    }
  }
  if (begin == n) return true;
  float last[kInt8Group] = {};
  float last_residual[kInt8Group] = {};
  std::byte bytes[kInt8Group];
  const GroupOf<std::byte> group = GroupAt(out, n, begin);
  std::memcpy(last, elements.data() + begin, (n - begin) * sizeof(float));
  std::memcpy(last_residual, residual.data() + begin, (n - begin) * sizeof(float));
  if (!EncodeGroupWithResidual(last, last_residual, {group.scale, bytes})) return false;
  std::memcpy(residual.data() + begin, last_residual, (n - begin) * sizeof(float));
  std::memcpy(group.bytes, bytes, n - begin);
  return true;
}

// False if a scale cannot come from an encoder of finite numbers; decodes all groups.
template <DecodeTo kTo>
HWY_INLINE bool DecodeInt8GroupsTo(std::span<const std::byte> encoded, std::span<float> elements) {
  bool valid = true;
  const size_t n = elements.size();
  const auto scale_of = [&valid](const std::byte* from) {
    const auto scale = LoadOnce<float>(from);
    valid &= scale >= kSmallestScale && scale <= kLargestScale;
    return scale;
  };
  size_t begin = 0;
  for (; begin + kInt8Group <= n; begin += kInt8Group) {
    const GroupOf<const std::byte> group = GroupAt(encoded, n, begin);
    DecodeGroup<kTo>(scale_of(group.scale), group.bytes, elements.data() + begin);
  }
  if (begin == n) return valid;
  float last[kInt8Group] = {};
  std::byte bytes[kInt8Group] = {};
  const GroupOf<const std::byte> group = GroupAt(encoded, n, begin);
  std::memcpy(last, elements.data() + begin, (n - begin) * sizeof(float));
  std::memcpy(bytes, group.bytes, n - begin);
  DecodeGroup<kTo>(scale_of(group.scale), bytes, last);
  std::memcpy(elements.data() + begin, last, (n - begin) * sizeof(float));
  return valid;
}

bool DecodeInt8Groups(std::span<const std::byte> encoded, DecodeTo to, std::span<float> elements) {
  switch (to) {
    case DecodeTo::kStore:
      return DecodeInt8GroupsTo<DecodeTo::kStore>(encoded, elements);
    case DecodeTo::kAdd:
      return DecodeInt8GroupsTo<DecodeTo::kAdd>(encoded, elements);
    case DecodeTo::kSubtract:
      return DecodeInt8GroupsTo<DecodeTo::kSubtract>(encoded, elements);
  }
  return false;
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(EncodeInt8Groups);
HWY_EXPORT(EncodeInt8GroupsWithResidual);
HWY_EXPORT(DecodeInt8Groups);

size_t Int8Codec::Encode(const CodecKey& /*key*/, std::span<const float> elements,
                         std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  return HWY_DYNAMIC_DISPATCH(EncodeInt8Groups)(elements, out) ? Int8Bytes(elements.size()) : 0;
}

size_t Int8Codec::EncodeWithResidual(const CodecKey& /*key*/, std::span<const float> elements,
                                     std::span<float> residual, std::span<std::byte> out,
                                     CodecScratch& /*scratch*/) const {
  const bool finite = EncodeSum(elements, residual, [&] {
    return HWY_DYNAMIC_DISPATCH(EncodeInt8GroupsWithResidual)(elements, residual, out);
  });
  return finite ? Int8Bytes(elements.size()) : 0;
}

bool Int8Codec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                       std::span<float> elements) const {
  return encoded.size() == Int8Bytes(elements.size()) &&
         HWY_DYNAMIC_DISPATCH(DecodeInt8Groups)(encoded, to, elements);
}

void EncodeInt8Weights(std::span<const float> weights, std::span<std::byte> encoded) {
  TUG_CHECK_EQ(encoded.size(), Int8Bytes(weights.size()));
  HWY_DYNAMIC_DISPATCH(EncodeInt8Groups)(weights, encoded);
}

void DecodeInt8Weights(std::span<const std::byte> encoded, std::span<float> weights) {
  TUG_CHECK_EQ(encoded.size(), Int8Bytes(weights.size()));
  HWY_DYNAMIC_DISPATCH(DecodeInt8Groups)(encoded, DecodeTo::kStore, weights);
}

}  // namespace tug
#endif  // HWY_ONCE
