// SPDX-License-Identifier: Apache-2.0
// Loops over a segment whose elements are encoded group by group, each independently, and the bits
// of such an encoding. Included once per instruction set, like kernels/simd/simd-inl.h.
//
// A format is a class with
//   static constexpr int64_t kGroup;     // elements per group except the last; a multiple of 64
//   int64_t GroupBytes(int64_t n) const;  // of the encoding of a group of n
//   // Encodes x, which is 0 from n to the next multiple of 64; those places do not count.
//   // `first`: index of x in the segment. False: not finite.
//   bool EncodeGroup(const float* x, int64_t n, int64_t first, std::byte* out) const;
//   // False: a number that is not finite. Writes up to the next multiple of 64.
//   template <DecodeTo kTo> bool DecodeGroup(const std::byte* in, int64_t n, float* x) const;
// Encodings follow one another without a gap. Bits are kept in words of 64, element i of a word in
// bit i, little-endian.

#if defined(TUG_COMPRESSION_DENSE_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_COMPRESSION_DENSE_GROUPS_INL_H_
#undef TUG_COMPRESSION_DENSE_GROUPS_INL_H_
#else
#define TUG_COMPRESSION_DENSE_GROUPS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "compression/codec.h"
#include "compression/dense/unaligned.h"
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Bits of infinity; those of finite magnitudes are smaller.
constexpr int32_t kInfinityBits = 0x7F800000;

using kernels::HWY_NAMESPACE::FloatLanes;
using kernels::HWY_NAMESPACE::FloatTag;
using kernels::HWY_NAMESPACE::FloatVector;
using kernels::HWY_NAMESPACE::IntTag;
using kernels::HWY_NAMESPACE::IntVector;
using kernels::HWY_NAMESPACE::IsFinite;
using kernels::HWY_NAMESPACE::LargestMagnitude;
using kernels::HWY_NAMESPACE::LoadUpTo;
using kernels::HWY_NAMESPACE::StoreUpTo;

// Bits of the mask, from bit `at` on. REQUIRES: at < 64.
template <class D>
HWY_INLINE uint64_t WordOfMask(D d, hn::Mask<D> mask, int64_t at) {
  std::conditional_t<(hn::MaxLanes(D()) > 8), uint16_t, uint8_t> bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return uint64_t{bits} << at;
}

// Mask of a word's bits, from bit `at` on. REQUIRES: at < 64.
template <class D>
HWY_INLINE hn::Mask<D> MaskOfWord(D d, uint64_t word, int64_t at) {
  const uint64_t bits = word >> at;
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
}

// Bits of the largest magnitude: larger for infinities and NaNs than for finite numbers.
HWY_INLINE int32_t LargestBits(const float* x, int64_t n) {
  auto largest = hn::Zero(IntTag());
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    largest = LargestMagnitude(largest, LoadUpTo(x + i, lanes));
  }
  if (i < n) largest = LargestMagnitude(largest, LoadUpTo(x + i, n - i));
  return hn::GetLane(hn::MaxOfLanes(IntTag(), largest));
}

// Result of a decoded d at its place x.
template <DecodeTo kTo>
HWY_INLINE FloatVector Place(FloatVector d, const float* x) {
  if constexpr (kTo == DecodeTo::kStore) return d;
  const auto old = hn::LoadU(FloatTag(), x);
  return kTo == DecodeTo::kAdd ? hn::Add(old, d) : hn::Sub(old, d);
}

// Copy of the last group, if it ends within a word, padded with zeros.
template <int64_t kGroup>
struct RaggedGroup {
  HWY_ALIGN float x[kGroup];

  void Fill(const float* from, int64_t n) {
    std::copy_n(from, n, x);
    std::fill(x + n, x + std::min(kGroup, n + 64), 0.0f);
  }
};

// False: an element is not finite.
template <class Format>
HWY_INLINE bool EncodeGroups(const Format& format, const float* x, int64_t n, std::byte* out) {
  RaggedGroup<Format::kGroup> ragged;
  for (int64_t at = 0; at < n; at += Format::kGroup) {
    const int64_t count = std::min(Format::kGroup, n - at);
    const float* from = x + at;
    if (count % 64 != 0) {
      ragged.Fill(from, count);
      from = ragged.x;
    }
    if (!format.EncodeGroup(from, count, at, out)) return false;
    out += format.GroupBytes(count);
  }
  return true;
}

// Encodes x + residual, each group while it is in the nearest cache, and leaves the encoding error
// in `residual`. False: a sum is not finite; the residual is then unspecified. The sums are
// aligned, since they are read back soon after they are written.
template <class Format>
HWY_INLINE bool EncodeGroupsWithResidual(const Format& format, const float* HWY_RESTRICT x,
                                         float* HWY_RESTRICT residual, int64_t n, std::byte* out) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  RaggedGroup<Format::kGroup> sums;
  for (int64_t at = 0; at < n; at += Format::kGroup) {
    const int64_t count = std::min(Format::kGroup, n - at);
    for (int64_t i = 0; i < count; i += lanes) {
      const auto old = LoadUpTo(residual + at + i, count - i);
      hn::Store(hn::Add(old, LoadUpTo(x + at + i, count - i)), d, sums.x + i);
    }
    for (int64_t i = (count + lanes - 1) / lanes * lanes; i % 64 != 0; i += lanes) {
      hn::Store(hn::Zero(d), d, sums.x + i);
    }
    if (!format.EncodeGroup(sums.x, count, at, out)) return false;
    if (!format.template DecodeGroup<DecodeTo::kSubtract>(out, count, sums.x)) return false;
    for (int64_t i = 0; i < count; i += lanes) {
      StoreUpTo(hn::Load(d, sums.x + i), residual + at + i, count - i);
    }
    out += format.GroupBytes(count);
  }
  return true;
}

// False: a number is not finite. REQUIRES: `in` is as long as the encoding of n elements.
template <DecodeTo kTo, class Format>
HWY_INLINE bool DecodeGroupsTo(const Format& format, const std::byte* in, int64_t n, float* x) {
  RaggedGroup<Format::kGroup> ragged;
  for (int64_t at = 0; at < n; at += Format::kGroup) {
    const int64_t count = std::min(Format::kGroup, n - at);
    float* to = x + at;
    if (count % 64 != 0) {
      ragged.Fill(to, count);
      to = ragged.x;
    }
    if (!format.template DecodeGroup<kTo>(in, count, to)) return false;
    if (count % 64 != 0) std::copy_n(to, count, x + at);
    in += format.GroupBytes(count);
  }
  return true;
}

template <class Format>
HWY_INLINE bool DecodeGroups(const Format& format, const std::byte* in, DecodeTo to, int64_t n,
                             float* x) {
  switch (to) {
    case DecodeTo::kStore:
      return DecodeGroupsTo<DecodeTo::kStore>(format, in, n, x);
    case DecodeTo::kAdd:
      return DecodeGroupsTo<DecodeTo::kAdd>(format, in, n, x);
    case DecodeTo::kSubtract:
      return DecodeGroupsTo<DecodeTo::kSubtract>(format, in, n, x);
  }
  return false;
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
