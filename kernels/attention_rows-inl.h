// The vector parts of attention. Included once per instruction set, like kernels/simd-inl.h.

#if defined(TUG_KERNELS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUG_KERNELS_ATTENTION_ROWS_INL_H_
#undef TUG_KERNELS_ATTENTION_ROWS_INL_H_
#else
#define TUG_KERNELS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "kernels/bf16-inl.h"
#include "kernels/bf16.h"
#include "kernels/dropout-inl.h"
#include "kernels/dropout_keeper.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// log(sum over i < visible of exp(scale * row[i])).
float LogSumExpRow(int64_t visible, float scale, const float* row) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  for (int64_t i = 0; i < visible; i += lanes) {
    largest = hn::Max(largest, KeepUpTo(LoadUpTo(row + i, visible - i), visible - i, lowest));
  }
  const auto max = hn::MaxOfLanes(d, largest);
  const auto scale_v = hn::Set(d, scale);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < visible; i += lanes) {
    const auto e = Exp(hn::Mul(hn::Sub(LoadUpTo(row + i, visible - i), max), scale_v));
    sum = hn::Add(sum, KeepUpTo(e, visible - i, hn::Zero(d)));
  }
  return hn::GetLane(max) * scale + std::log(SumLanes(sum));
}

// The probabilities of lanes i .. of a row of scores; 0 from `visible` on.
HWY_INLINE FloatVector Probabilities(const float* row, int64_t i, int64_t visible, int64_t count,
                                     FloatVector scale, FloatVector minus_lse) {
  const FloatTag d;
  if (i >= visible) return hn::Zero(d);
  const auto p = Exp(hn::MulAdd(LoadUpTo(row + i, count - i), scale, minus_lse));
  return KeepUpTo(p, visible - i, hn::Zero(d));
}

// A row of scores becomes dropout(probabilities), in place: [0, visible) of it, zeros up to count.
// first_block: the row's first block of 64 elements.
void ProbabilitiesRow(const DropoutKeeper& keeper, uint32_t sample_offset, uint32_t first_block,
                      int64_t visible, int64_t count, float scale, float lse, float* row) {
  const FloatTag d;
  HWY_ALIGN float factor[64];
  const auto scale_v = hn::Set(d, scale);
  const auto minus_lse = hn::Set(d, -lse);
  const bool drop = keeper.threshold != 0;
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t end = std::min<int64_t>(count, start + 64);
    if (drop && start < visible) {
      DropoutFactors(keeper, sample_offset, first_block + static_cast<uint32_t>(start / 64),
                     factor);
    }
    for (int64_t i = start; i < end; i += FloatLanes()) {
      auto p = Probabilities(row, i, visible, count, scale_v, minus_lse);
      if (drop && i < visible) p = ApplyFactor(p, LoadUpTo(factor + i - start, end - i));
      StoreUpTo(p, row + i, count - i);
    }
  }
}

// A row of scores becomes the row of probabilities, and dp, the gradient of dropout(probabilities),
// that of the scores, both in place. With dropout, dropped = dropout(probabilities).
void BackwardRow(const DropoutKeeper& keeper, uint32_t sample_offset, uint32_t first_block,
                 int64_t visible, int64_t count, float scale, float lse, float* row, float* dp,
                 float* dropped) {
  const FloatTag d;
  HWY_ALIGN float factor[64];
  const auto scale_v = hn::Set(d, scale);
  const auto minus_lse = hn::Set(d, -lse);
  const bool drop = keeper.threshold != 0;
  auto sum = hn::Zero(d);
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t end = std::min<int64_t>(count, start + 64);
    if (drop) {
      DropoutFactors(keeper, sample_offset, first_block + static_cast<uint32_t>(start / 64),
                     factor);
    }
    for (int64_t i = start; i < end; i += FloatLanes()) {
      const auto p = Probabilities(row, i, visible, count, scale_v, minus_lse);
      auto gradient = LoadUpTo(dp + i, count - i);
      if (drop) {
        const auto f = LoadUpTo(factor + i - start, end - i);
        gradient = ApplyFactor(gradient, f);
        StoreUpTo(gradient, dp + i, count - i);
        StoreUpTo(ApplyFactor(p, f), dropped + i, count - i);
      }
      StoreUpTo(p, row + i, count - i);
      sum = hn::MulAdd(p, gradient, sum);
    }
  }
  const auto mean = hn::SumOfLanes(d, sum);
  for (int64_t i = 0; i < count; i += FloatLanes()) {
    const auto inner = hn::Sub(LoadUpTo(dp + i, count - i), mean);
    const auto weight = hn::Mul(LoadUpTo(row + i, count - i), scale_v);
    StoreUpTo(hn::Mul(weight, inner), dp + i, count - i);
  }
}

// dst = src, exactly.   src [rows][stride], of which `columns` are read; dst [rows][columns]
void WidenRows(int64_t rows, int64_t columns, const Bf16* src, int64_t stride, float* dst) {
  for (int64_t row = 0; row < rows; ++row, src += stride, dst += columns) {
    for (int64_t i = 0; i < columns; i += FloatLanes()) {
      StoreUpTo(LoadUpTo(src + i, columns - i), dst + i, columns - i);
    }
  }
}

// dst = src, rounded.   src [rows][columns]; dst [rows][stride], of which `columns` are written
void RoundRows(int64_t rows, int64_t columns, const float* src, Bf16* dst, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row, src += columns, dst += stride) {
    for (int64_t i = 0; i < columns; i += FloatLanes()) {
      StoreUpTo(LoadUpTo(src + i, columns - i), dst + i, columns - i);
    }
  }
}

// out[0 .. dim) = softmax(scale * q k^T) v over `keys` rows of k and v, `stride` apart.
// p: scratch [keys]
void OneQuery(int64_t keys, int64_t dim, int64_t stride, float scale, const float* q,
              const float* k, const float* v, float* p, float* out) {
  const FloatTag d;
  for (int64_t key = 0; key < keys; ++key) {
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < dim; i += FloatLanes()) {
      sum = hn::MulAdd(LoadUpTo(q + i, dim - i), LoadUpTo(k + key * stride + i, dim - i), sum);
    }
    p[key] = SumLanes(sum);
  }
  ProbabilitiesRow({.threshold = 0}, 0, 0, keys, keys, scale, LogSumExpRow(keys, scale, p), p);
  for (int64_t i = 0; i < dim; i += FloatLanes()) {
    auto sum = hn::Zero(d);
    for (int64_t key = 0; key < keys; ++key) {
      sum = hn::MulAdd(hn::Set(d, p[key]), LoadUpTo(v + key * stride + i, dim - i), sum);
    }
    StoreUpTo(sum, out + i, dim - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
