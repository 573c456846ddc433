// Philox in vectors, for all that drops elements. Included once per instruction set, like
// kernels/simd-inl.h.

#if defined(TUG_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_DROPOUT_INL_H_
#undef TUG_KERNELS_DROPOUT_INL_H_
#else
#define TUG_KERNELS_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "base/philox.h"
#include "hwy/highway.h"
#include "kernels/bf16-inl.h"
#include "kernels/dropout_keeper.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

using WordTag = hn::RebindToUnsigned<FloatTag>;
using WordVector = hn::Vec<WordTag>;

// Four words of one counter per lane.
struct FourWords {
  WordVector word[4];
};

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE FourWords RandomWords(const DropoutKey& key, uint32_t sample_offset, uint32_t block,
                                 uint32_t lane) {
  const auto words =
      Philox4x32(DropoutCounter(key, sample_offset, block, lane), DropoutPhiloxKey(key));
  const WordTag d;
  return {{hn::Set(d, words[0]), hn::Set(d, words[1]), hn::Set(d, words[2]), hn::Set(d, words[3])}};
}

#else

using WideTag = hn::Repartition<uint64_t, WordTag>;
using WideVector = hn::Vec<WideTag>;

// 32-bit numbers in the low halves of 64-bit lanes. The high halves hold rubbish, which the
// multiplication of the low halves (MulEven) ignores: so a round needs no shuffle.
struct PhiloxState {
  WideVector c0, c1, c2, c3;
};

HWY_INLINE WideVector MulLow(WideVector a, WordVector b) {
  return hn::MulEven(hn::BitCast(WordTag(), a), b);
}

HWY_INLINE void PhiloxRound(PhiloxState& s, uint32_t key0, uint32_t key1) {
  const WordTag d;
  const WideTag dw;
  const auto p0 = MulLow(s.c0, hn::Set(d, 0xD2511F53u));
  const auto p1 = MulLow(s.c2, hn::Set(d, 0xCD9E8D57u));
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

// The words of the counters of `block` from `lane` on, one counter per lane. REQUIRES: the vector's
// lanes divide 16.
HWY_INLINE FourWords RandomWords(const DropoutKey& key, uint32_t sample_offset, uint32_t block,
                                 uint32_t lane) {
  const WideTag dw;
  const auto counter = DropoutCounter(key, sample_offset, block, lane);
  auto round_key = DropoutPhiloxKey(key);
  const auto index = hn::Iota(dw, 0);
  PhiloxState even;
  even.c0 = hn::Add(hn::Set(dw, uint64_t{counter[0]}), hn::Add(index, index));
  even.c1 = hn::Set(dw, uint64_t{counter[1]});
  even.c2 = hn::Set(dw, uint64_t{counter[2]});
  even.c3 = hn::Set(dw, uint64_t{counter[3]});
  PhiloxState odd = even;
  odd.c0 = hn::Add(even.c0, hn::Set(dw, uint64_t{1}));
  for (int round = 0; round < 10; ++round) {
    PhiloxRound(even, round_key[0], round_key[1]);
    PhiloxRound(odd, round_key[0], round_key[1]);
    round_key[0] += 0x9E3779B9u;
    round_key[1] += 0xBB67AE85u;
  }
  return {{Interleave(even.c0, odd.c0), Interleave(even.c1, odd.c1), Interleave(even.c2, odd.c2),
           Interleave(even.c3, odd.c3)}};
}

#endif  // HWY_TARGET == HWY_SCALAR

// factor[0 .. 64) of a block: `scale` where the element is kept, 0 where it is dropped.
HWY_INLINE void DropoutFactors(const DropoutKeeper& keeper, uint32_t sample_offset, uint32_t block,
                               float* HWY_RESTRICT factor) {
  const FloatTag d;
  const WordTag dw;
  const int64_t lanes = FloatLanes();
  const auto threshold = hn::Set(dw, keeper.threshold);
  const auto scale = hn::Set(d, keeper.scale);
  for (int64_t lane = 0; lane < 16; lane += lanes) {
    const FourWords words =
        RandomWords(keeper.key, sample_offset, block, static_cast<uint32_t>(lane));
    for (int64_t j = 0; j < 4; ++j) {
      const auto drop = hn::RebindMask(d, hn::Lt(words.word[j], threshold));
      hn::StoreU(hn::IfThenZeroElse(drop, scale), d, factor + 16 * j + lane);
    }
  }
}

// x where the element is kept, times the factor; an exact zero (also of infinity and NaN) where it
// is dropped.
HWY_INLINE FloatVector ApplyFactor(FloatVector x, FloatVector factor) {
  const FloatTag d;
  return hn::IfThenElseZero(hn::Ne(factor, hn::Zero(d)), hn::Mul(x, factor));
}

// The bias of `count` elements from `column` on: in place, or copied to `wrapped` where a row ends
// between.
HWY_INLINE const float* BiasOfBlock(const float* bias, int64_t width, int64_t column, int64_t count,
                                    float* wrapped) {
  if (column + count <= width) return bias + column;
  for (int64_t i = 0; i < count; ++i) {
    wrapped[i] = bias[column];
    if (++column == width) column = 0;
  }
  return wrapped;
}

// y = residual + factor (x + bias) for elements [begin, end) of one sample. A task begins and ends
// at multiples of 64 where it can: the factors of a block that it shares are computed twice. With a
// threshold of 0 every element is kept and no random number is drawn. bias, residual: nullptr for
// none. x and y may be equal, or residual and y.
template <typename T>
HWY_INLINE void DropoutAddRange(const DropoutKeeper& keeper, uint32_t sample_offset, int64_t begin,
                                int64_t end, int64_t width, const T* x, const float* bias,
                                const T* residual, T* y) {
  HWY_ALIGN float factor[64];
  HWY_ALIGN float wrapped[64];
  const int64_t lanes = FloatLanes();
  const bool drop = keeper.threshold != 0;
  int64_t count = 0;
  for (int64_t start = begin; start < end; start += count) {
    const int64_t in_block = start % 64;
    count = std::min<int64_t>(64 - in_block, end - start);
    if (drop) DropoutFactors(keeper, sample_offset, static_cast<uint32_t>(start / 64), factor);
    const float* bias_block =
        bias == nullptr ? nullptr : BiasOfBlock(bias, width, start % width, count, wrapped);
    for (int64_t i = 0; i < count; i += lanes) {
      const int64_t left = count - i;
      auto v = LoadUpTo(x + start + i, left);
      if (bias != nullptr) v = hn::Add(v, LoadUpTo(bias_block + i, left));
      if (drop) v = ApplyFactor(v, LoadUpTo(factor + in_block + i, left));
      if (residual != nullptr) v = hn::Add(LoadUpTo(residual + start + i, left), v);
      StoreUpTo(v, y + start + i, left);
    }
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
