// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Two passes over a row, which the second one finds in a cache of the core: the first finds the
// largest logit and the sum of exponentials, chunk by chunk; the second writes the gradient.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Logits per chunk: they stay in the nearest cache between their maximum and their exponentials.
constexpr int64_t kChunk = 4096;

// sum = sum_j e^(logit_j - max).
struct Exponentials {
  float max;
  float sum;
};

HWY_INLINE float MaxOf(int64_t n, const float* x) {
  const FloatTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    largest = hn::Max(largest, KeepUpTo(LoadUpTo(x + i, n - i), n - i, lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// If a later chunk has a larger logit, the sum so far is rescaled to it. A NaN in the maximum or in
// the sum persists.
HWY_INLINE Exponentials SumExponentials(int64_t vocab, const float* logits) {
  const FloatTag d;
  float max = std::numeric_limits<float>::lowest();
  auto sum = hn::Zero(d);
  for (int64_t begin = 0; begin < vocab; begin += kChunk) {
    const int64_t end = std::min(vocab, begin + kChunk);
    const float chunk_max = MaxOf(end - begin, logits + begin);
    if (!(chunk_max <= max)) {
      sum = hn::Mul(sum, Exp(hn::Set(d, max - chunk_max)));
      max = chunk_max;
    }
    const auto max_v = hn::Set(d, max);
    for (int64_t i = begin; i < end; i += FloatLanes()) {
      const auto e = Exp(hn::Sub(LoadUpTo(logits + i, end - i), max_v));
      sum = hn::Add(sum, KeepUpTo(e, end - i, hn::Zero(d)));
    }
  }
  return {max, SumLanes(sum)};
}

// Whether any of the n elements equals `value`.
HWY_INLINE bool Has(int64_t n, const float* x, float value) {
  const FloatTag d;
  const auto wanted = hn::Set(d, value);
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const auto found = hn::IfThenElseZero(hn::Eq(LoadUpTo(x + i, n - i), wanted), hn::Set(d, 1.0f));
    const auto none = hn::Eq(KeepUpTo(found, n - i, hn::Zero(d)), hn::Zero(d));
    if (!hn::AllTrue(d, none)) return true;
  }
  return false;
}

HWY_INLINE Exponentials LossOfRow(int64_t vocab, const float* logits, int32_t target, float* loss,
                                  uint8_t* correct) {
  const Exponentials e = SumExponentials(vocab, logits);
  *loss = static_cast<float>(std::log(static_cast<double>(e.sum)) -
                             static_cast<double>(logits[target] - e.max));
  if (correct != nullptr) {
    *correct = logits[target] == e.max && !Has(target, logits, e.max) ? 1 : 0;
  }
  return e;
}

// With log_sum = log(sum_j e^logit_j):
//   gradient_j = p_j (1 + 2 z_loss log_sum) - label_smoothing / vocab
//                - (1 - label_smoothing if j is the target)
template <typename T>
HWY_INLINE void GradientOfRow(int64_t vocab, const float* logits, int32_t target,
                              const Exponentials& e, const Objective& objective, T* gradient) {
  const FloatTag d;
  float scale = 1.0f / e.sum;
  if (objective.z_loss != 0) {
    const double log_sum = static_cast<double>(e.max) + std::log(static_cast<double>(e.sum));
    scale = static_cast<float>((1.0 + 2.0 * static_cast<double>(objective.z_loss) * log_sum) /
                               static_cast<double>(e.sum));
  }
  const auto max_v = hn::Set(d, e.max);
  const auto scale_v = hn::Set(d, scale);
  const auto share = hn::Set(d, objective.label_smoothing / static_cast<float>(vocab));
  const auto of_other = [&](FloatVector logit) HWY_ATTR {
    return hn::MulSub(Exp(hn::Sub(logit, max_v)), scale_v, share);
  };
  // Computed before the loop, since gradient may be logits.
  const auto of_target =
      hn::Sub(of_other(hn::Set(d, logits[target])), hn::Set(d, 1.0f - objective.label_smoothing));
  for (int64_t i = 0; i < vocab; i += FloatLanes()) {
    StoreUpTo(of_other(LoadUpTo(logits + i, vocab - i)), gradient + i, vocab - i);
  }
  StoreUpTo(of_target, gradient + target, 1);
}

template <typename T>
void CrossEntropyRows(int64_t begin, int64_t end, const CrossEntropyArgs<T>& a) {
  for (int64_t row = begin; row < end; ++row) {
    uint8_t* const hit = a.correct == nullptr ? nullptr : a.correct + row;
    const float* const logits = a.logits + row * a.stride;
    T* const gradient = a.gradient == nullptr ? nullptr : a.gradient + row * a.stride;
    const int32_t target = a.targets[row];
    if (target == kNoTarget) {
      a.losses[row] = 0;
      if (hit != nullptr) *hit = 0;
      if (gradient != nullptr) std::fill_n(gradient, a.vocab, T{});
      continue;
    }
    const Exponentials e = LossOfRow(a.vocab, logits, target, a.losses + row, hit);
    if (gradient != nullptr) GradientOfRow(a.vocab, logits, target, e, a.objective, gradient);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

namespace {

constexpr int64_t kElementsPerTask = 16384;

int64_t RowsPerTask(int64_t vocab) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, vocab));
}

}  // namespace

template <typename T>
void CrossEntropy(ThreadPool& pool, const CrossEntropyArgs<T>& a) {
  const int64_t per_task = RowsPerTask(a.vocab);
  pool.ParallelFor((a.rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    TUG_DISPATCH(CrossEntropyRows, T)(row, std::min(a.rows, row + per_task), a);
  });
}

template void CrossEntropy(ThreadPool&, const CrossEntropyArgs<float>&);
template void CrossEntropy(ThreadPool&, const CrossEntropyArgs<Bf16>&);

}  // namespace tug::kernels
#endif  // HWY_ONCE
