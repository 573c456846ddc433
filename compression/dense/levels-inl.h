// SPDX-License-Identifier: Apache-2.0
// Encodes groups of elements as signed whole numbers: each a fraction of its group's largest
// magnitude, in a given number of levels. Included once per instruction set, like
// kernels/simd/simd-inl.h.
//
// Encoding of a group: the largest magnitude, FP32; then for each 64 elements or fewer one word per
// bit of the level, from the lowest, and a word of signs (bit 1: below 0). Every such word is
// valid; the bits beyond the last element are ignored.

#if defined(TUG_COMPRESSION_DENSE_LEVELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_COMPRESSION_DENSE_LEVELS_INL_H_
#undef TUG_COMPRESSION_DENSE_LEVELS_INL_H_
#else
#define TUG_COMPRESSION_DENSE_LEVELS_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "compression/codec.h"
#include "compression/dense/dither.h"
#include "compression/dense/groups-inl.h"
#include "compression/dense/levels.h"
#include "compression/dense/unaligned.h"
#include "hwy/highway.h"
#include "kernels/simd/philox-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

// A format of groups-inl.h. kRandom: rounds to one of the two levels around an element, without
// bias; else to the nearest level, ties to even.
template <int64_t kGroupElements, bool kRandom>
struct Levels {
  static constexpr int64_t kGroup = kGroupElements;
  static constexpr int kMaxBits = 7;
  static constexpr int64_t kLanes = hn::MaxLanes(FloatTag());

  int bits;                        // per level: levels are 0 .. 2^bits - 1
  const Dither* dither = nullptr;  // for encoding, if kRandom

  int64_t GroupBytes(int64_t n) const { return LevelsBytes(n, kGroup, bits); }

  // Encodes the 64 elements x, at index `first` of the segment.
  HWY_INLINE void EncodeBlock(const float* x, int64_t first, FloatVector norm,
                              std::byte* out) const {
    const FloatTag d;
    const IntTag di;
    const auto levels = hn::Set(d, static_cast<float>((1 << bits) - 1));
    uint64_t words[kMaxBits + 1] = {};
    for (int64_t lane = 0; lane < 16; lane += kLanes) {
      kernels::HWY_NAMESPACE::FourWords draws;
      if constexpr (kRandom) {
        draws = kernels::HWY_NAMESPACE::RandomWords(dither->Counter(first / 64, lane),
                                                    dither->philox_key());
      }
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t at = 16 * j + lane;
        const auto value = hn::LoadU(d, x + at);
        const auto scaled = hn::Mul(hn::Div(hn::Abs(value), norm), levels);
        auto level = hn::Round(scaled);
        if constexpr (kRandom) {
          level = hn::Floor(scaled);
          const auto draw = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(draws.word[j])));
          const auto up = hn::Lt(hn::Mul(draw, hn::Set(d, 0x1p-24f)), hn::Sub(scaled, level));
          level = hn::Add(level, hn::IfThenElseZero(up, hn::Set(d, 1.0f)));
        }
        const auto code = hn::ConvertTo(di, level);
        for (int k = 0; k < bits; ++k) {
          words[k] |= WordOfMask(di, hn::TestBit(code, hn::Set(di, 1 << k)), at);
        }
        words[bits] |= WordOfMask(di, hn::Lt(hn::BitCast(di, value), hn::Zero(di)), at);
      }
    }
    std::memcpy(out, words, static_cast<size_t>(bits + 1) * sizeof(uint64_t));
  }

  HWY_INLINE bool EncodeGroup(const float* x, int64_t n, int64_t first, std::byte* out) const {
    const int32_t largest = LargestBits(x, (n + 63) / 64 * 64);
    if (largest >= kInfinityBits) return false;
    const auto norm = std::bit_cast<float>(largest);
    std::memcpy(out, &norm, sizeof(norm));
    out += sizeof(norm);
    const auto divisor = hn::Set(FloatTag(), norm == 0.0f ? 1.0f : norm);
    for (int64_t i = 0; i < n; i += 64, out += 8 * (bits + 1)) {
      EncodeBlock(x + i, first + i, divisor, out);
    }
    return true;
  }

  // No fraction is above 1, so no number is above the norm.
  template <DecodeTo kTo>
  HWY_INLINE bool DecodeGroup(const std::byte* in, int64_t n, float* x) const {
    const FloatTag d;
    const IntTag di;
    const auto norm = LoadOnce<float>(in);
    if (!(norm >= 0.0f && norm <= std::numeric_limits<float>::max())) return false;
    const auto largest = hn::Set(d, norm);
    const auto levels = hn::Set(d, static_cast<float>((1 << bits) - 1));
    in += sizeof(norm);
    for (int64_t i = 0; i < n; i += 64) {
      uint64_t words[kMaxBits + 1] = {};
      for (int k = 0; k <= bits; ++k, in += 8) words[k] = LoadOnce<uint64_t>(in);
      for (int64_t j = 0; j < 64; j += kLanes) {
        auto code = hn::Zero(di);
        for (int k = 0; k < bits; ++k) {
          const auto bit = MaskOfWord(di, words[k], j);
          code = hn::Or(code, hn::IfThenElseZero(bit, hn::Set(di, 1 << k)));
        }
        const auto fraction = hn::Div(hn::ConvertTo(d, code), levels);
        const auto magnitude = hn::Mul(largest, fraction);
        const auto below = MaskOfWord(d, words[bits], j);
        const auto value = hn::IfThenElse(below, hn::Neg(magnitude), magnitude);
        hn::StoreU(Place<kTo>(value, x + i + j), d, x + i + j);
      }
    }
    return true;
  }
};

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
