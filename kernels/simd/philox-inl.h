// SPDX-License-Identifier: Apache-2.0
// base/philox.h in vectors. Included once per instruction set, like kernels/simd/simd-inl.h.

#if defined(TUG_KERNELS_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_SIMD_PHILOX_INL_H_
#undef TUG_KERNELS_SIMD_PHILOX_INL_H_
#else
#define TUG_KERNELS_SIMD_PHILOX_INL_H_
#endif

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

using WordTag = hn::RebindToUnsigned<FloatTag>;
using WordVector = hn::Vec<WordTag>;

// Four words of one counter per lane.
struct FourWords {
  WordVector word[4];
};

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE FourWords RandomWords(const std::array<uint32_t, 4>& counter,
                                 const std::array<uint32_t, 2>& key) {
  const auto words = Philox4x32(counter, key);
  const WordTag d;
  return {{hn::Set(d, words[0]), hn::Set(d, words[1]), hn::Set(d, words[2]), hn::Set(d, words[3])}};
}

#else

using WideTag = hn::Repartition<uint64_t, WordTag>;
using WideVector = hn::Vec<WideTag>;

// 32-bit numbers in the low halves of 64-bit lanes. The high halves are garbage, which the
// multiplication of the low halves (MulEven) ignores; so a round needs no shuffle.
struct PhiloxState {
  WideVector c0, c1, c2, c3;
};

HWY_INLINE WideVector MulLow(WideVector a, WordVector b) {
  return hn::MulEven(hn::BitCast(WordTag(), a), b);
}

HWY_INLINE void PhiloxRound(PhiloxState& s, uint32_t key0, uint32_t key1) {
  const WordTag d;
  const WideTag dw;
  const auto p0 = MulLow(s.c0, hn::Set(d, kPhiloxMultiplier0));
  const auto p1 = MulLow(s.c2, hn::Set(d, kPhiloxMultiplier1));
  s.c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), s.c1), hn::Set(dw, uint64_t{key0}));
  s.c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), s.c3), hn::Set(dw, uint64_t{key1}));
  s.c1 = p1;
  s.c3 = p0;
}

// The low halves of `even` and `odd`, interleaved.
HWY_INLINE WordVector Interleave(WideVector even, WideVector odd) {
  const WordTag d;
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// Words of `counter` and of the following values of counter[0], one per lane.
HWY_INLINE FourWords RandomWords(const std::array<uint32_t, 4>& counter,
                                 const std::array<uint32_t, 2>& key) {
  const WideTag dw;
  auto round_key = key;
  const auto index = hn::Iota(dw, 0);
  PhiloxState even;
  even.c0 = hn::Add(hn::Set(dw, uint64_t{counter[0]}), hn::Add(index, index));
  even.c1 = hn::Set(dw, uint64_t{counter[1]});
  even.c2 = hn::Set(dw, uint64_t{counter[2]});
  even.c3 = hn::Set(dw, uint64_t{counter[3]});
  PhiloxState odd = even;
  odd.c0 = hn::Add(even.c0, hn::Set(dw, uint64_t{1}));
  for (int round = 0; round < kPhiloxRounds; ++round) {
    PhiloxRound(even, round_key[0], round_key[1]);
    PhiloxRound(odd, round_key[0], round_key[1]);
    round_key[0] += kPhiloxKeyStep0;
    round_key[1] += kPhiloxKeyStep1;
  }
  return {{Interleave(even.c0, odd.c0), Interleave(even.c1, odd.c1), Interleave(even.c2, odd.c2),
           Interleave(even.c3, odd.c3)}};
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
