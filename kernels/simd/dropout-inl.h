// SPDX-License-Identifier: Apache-2.0
// Dropout in vectors, for all kernels that drop elements. Included once per instruction set, like
// kernels/simd/simd-inl.h.

#if defined(TUG_KERNELS_SIMD_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_SIMD_DROPOUT_INL_H_
#undef TUG_KERNELS_SIMD_DROPOUT_INL_H_
#else
#define TUG_KERNELS_SIMD_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/dropout_keeper.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/philox-inl.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

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
        RandomWords(DropoutCounter(keeper.key, sample_offset, block, static_cast<uint32_t>(lane)),
                    DropoutPhiloxKey(keeper.key));
    for (int64_t j = 0; j < 4; ++j) {
      const auto drop = hn::RebindMask(d, hn::Lt(words.word[j], threshold));
      hn::StoreU(hn::IfThenZeroElse(drop, scale), d, factor + 16 * j + lane);
    }
  }
}

// x times the factor; an exact zero where the element is dropped, also for infinity and NaN.
HWY_INLINE FloatVector ApplyFactor(FloatVector x, FloatVector factor) {
  const FloatTag d;
  return hn::IfThenElseZero(hn::Ne(factor, hn::Zero(d)), hn::Mul(x, factor));
}

// Bias of `count` elements from `column` on: in place, or copied to `wrapped` if the range crosses
// the end of a row.
HWY_INLINE const float* BiasOfBlock(const float* bias, int64_t width, int64_t column, int64_t count,
                                    float* wrapped) {
  if (column + count <= width) return bias + column;
  for (int64_t i = 0; i < count; ++i) {
    wrapped[i] = bias[column];
    if (++column == width) column = 0;
  }
  return wrapped;
}

// DropoutAdd of elements [begin, end) of one sample. Tasks should begin and end at multiples of 64:
// the factors of a block shared by two tasks are computed twice. With a threshold of 0 every
// element is kept and no random number is drawn.
template <typename T>
HWY_INLINE void DropoutAddRange(const DropoutAddArgs<T>& a, const DropoutKeeper& keeper,
                                int64_t sample, int64_t begin, int64_t end) {
  const int64_t at = sample * a.elements_per_sample;
  const T* const x = a.x + at;
  const float* const bias = a.bias;
  const T* const residual = a.residual == nullptr ? nullptr : a.residual + at;
  T* const y = a.y + at;
  HWY_ALIGN float factor[64];
  HWY_ALIGN float wrapped[64];
  const int64_t lanes = FloatLanes();
  const bool drop = keeper.threshold != 0;
  int64_t count = 0;
  for (int64_t start = begin; start < end; start += count) {
    const int64_t in_block = start % 64;
    count = std::min<int64_t>(64 - in_block, end - start);
    if (drop) {
      DropoutFactors(keeper, static_cast<uint32_t>(sample), static_cast<uint32_t>(start / 64),
                     factor);
    }
    const float* bias_block =
        bias == nullptr ? nullptr : BiasOfBlock(bias, a.width, start % a.width, count, wrapped);
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
