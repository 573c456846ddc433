// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/attention_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_rows_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/dropout-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

float LogSumExp(int64_t visible, float scale, const float* row) {
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

// Dropout factors of the row's keys start ... start + 63.
HWY_INLINE void FactorsFrom(const DropoutRow& dropout, int64_t start, float* factor) {
  DropoutFactors(dropout.keeper, dropout.sample,
                 dropout.first_block + static_cast<uint32_t>(start / 64), factor);
}

// Probabilities of a vector of scores from element i on; 0 from `visible` on.
HWY_INLINE FloatVector Probabilities(const float* row, int64_t i, int64_t visible, int64_t count,
                                     FloatVector scale, FloatVector minus_lse) {
  const FloatTag d;
  if (i >= visible) return hn::Zero(d);
  const auto p = Exp(hn::MulAdd(LoadUpTo(row + i, count - i), scale, minus_lse));
  return KeepUpTo(p, visible - i, hn::Zero(d));
}

template <typename T>
void WriteProbabilities(const ScoreRow& of, const float* scores, T* out) {
  const FloatTag d;
  const auto [dropout, visible, count, scale, lse] = of;
  HWY_ALIGN float factor[64];
  const auto scale_v = hn::Set(d, scale);
  const auto minus_lse = hn::Set(d, -lse);
  const bool drop = dropout.keeper.threshold != 0;
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t end = std::min<int64_t>(count, start + 64);
    if (drop && start < visible) FactorsFrom(dropout, start, factor);
    for (int64_t i = start; i < end; i += FloatLanes()) {
      auto p = Probabilities(scores, i, visible, count, scale_v, minus_lse);
      if (drop && i < visible) p = ApplyFactor(p, LoadUpTo(factor + i - start, end - i));
      StoreUpTo(p, out + i, count - i);
    }
  }
}

template <typename T>
void WriteGradients(const ScoreRow& of, float* row, float* dp, T* dscores, T* dropped) {
  const FloatTag d;
  const auto [dropout, visible, count, scale, lse] = of;
  HWY_ALIGN float factor[64];
  const auto scale_v = hn::Set(d, scale);
  const auto minus_lse = hn::Set(d, -lse);
  const bool drop = dropout.keeper.threshold != 0;
  const bool write_dropped = drop || std::is_same_v<T, Bf16>;  // otherwise `row` has them
  auto sum = hn::Zero(d);
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t end = std::min<int64_t>(count, start + 64);
    if (drop) FactorsFrom(dropout, start, factor);
    for (int64_t i = start; i < end; i += FloatLanes()) {
      const auto p = Probabilities(row, i, visible, count, scale_v, minus_lse);
      auto kept = p;
      auto gradient = LoadUpTo(dp + i, count - i);
      if (drop) {
        const auto f = LoadUpTo(factor + i - start, end - i);
        kept = ApplyFactor(p, f);
        gradient = ApplyFactor(gradient, f);
        StoreUpTo(gradient, dp + i, count - i);
      }
      if (write_dropped) StoreUpTo(kept, dropped + i, count - i);
      StoreUpTo(p, row + i, count - i);
      sum = hn::MulAdd(p, gradient, sum);
    }
  }
  const auto mean = hn::SumOfLanes(d, sum);
  for (int64_t i = 0; i < count; i += FloatLanes()) {
    const auto inner = hn::Sub(LoadUpTo(dp + i, count - i), mean);
    const auto weight = hn::Mul(LoadUpTo(row + i, count - i), scale_v);
    StoreUpTo(hn::Mul(weight, inner), dscores + i, count - i);
  }
}

void AnswerOneQuery(const OneQueryArgs& args, int64_t head, float* p) {
  const FloatTag d;
  const int64_t keys = args.keys, dim = args.head_dim, stride = args.heads * dim, at = head * dim;
  const float* const q = args.q + at;
  const float* const k = args.k + at;
  const float* const v = args.v + at;
  float* const out = args.out + at;
  for (int64_t key = 0; key < keys; ++key) {
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < dim; i += FloatLanes()) {
      sum = hn::MulAdd(LoadUpTo(q + i, dim - i), LoadUpTo(k + key * stride + i, dim - i), sum);
    }
    p[key] = SumLanes(sum);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const ScoreRow row{.dropout = {.keeper = {.threshold = 0}},
                     .visible = keys,
                     .count = keys,
                     .scale = scale,
                     .lse = LogSumExp(keys, scale, p)};
  WriteProbabilities<float>(row, p, p);
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

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(LogSumExp);
HWY_EXPORT(AnswerOneQuery);

float LogSumExpRow(int64_t visible, float scale, const float* row) {
  return HWY_DYNAMIC_DISPATCH(LogSumExp)(visible, scale, row);
}

template <typename T>
void ProbabilitiesRow(const ScoreRow& of, const float* scores, T* out) {
  TUG_DISPATCH(WriteProbabilities, T)(of, scores, out);
}

template <typename T>
void GradientsRow(const ScoreRow& of, float* row, float* dp, T* dscores, T* dropped) {
  TUG_DISPATCH(WriteGradients, T)(of, row, dp, dscores, dropped);
}

template void ProbabilitiesRow(const ScoreRow&, const float*, float*);
template void ProbabilitiesRow(const ScoreRow&, const float*, Bf16*);
template void GradientsRow(const ScoreRow&, float*, float*, float*, float*);
template void GradientsRow(const ScoreRow&, float*, float*, Bf16*, Bf16*);

void OneQuery(const OneQueryArgs& args, int64_t head, float* p) {
  HWY_DYNAMIC_DISPATCH(AnswerOneQuery)(args, head, p);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
