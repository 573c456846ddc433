#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// loss = log(sum_j e^(logit_j - max)) - (logit_target - max). `exps`, unless nullptr, receives
// e^(logit - max); it may be `logits` itself. Returns the sum.
HWY_INLINE float LossOfRow(int64_t vocab, const float* logits, int32_t target, float* exps,
                           float* loss) {
  const FloatTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  for (int64_t i = 0; i < vocab; i += FloatLanes()) {
    largest = hn::Max(largest, KeepUpTo(LoadUpTo(logits + i, vocab - i), vocab - i, lowest));
  }
  const float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto max_v = hn::Set(d, max);
  const float at_target = logits[target] - max;
  auto sum_v = hn::Zero(d);
  for (int64_t i = 0; i < vocab; i += FloatLanes()) {
    const auto e =
        KeepUpTo(Exp(hn::Sub(LoadUpTo(logits + i, vocab - i), max_v)), vocab - i, hn::Zero(d));
    sum_v = hn::Add(sum_v, e);
    if (exps != nullptr) StoreUpTo(e, exps + i, vocab - i);
  }
  const float sum = SumLanes(sum_v);
  *loss = static_cast<float>(std::log(static_cast<double>(sum)) - static_cast<double>(at_target));
  return sum;
}

void GradientRows(int64_t rows, int64_t vocab, float* logits, const int32_t* targets,
                  float* losses) {
  const FloatTag d;
  for (int64_t row = 0; row < rows; ++row) {
    float* p = logits + row * vocab;
    const float sum = LossOfRow(vocab, p, targets[row], p, losses + row);
    const auto inverse = hn::Set(d, 1.0f / sum);
    for (int64_t i = 0; i < vocab; i += FloatLanes()) {
      StoreUpTo(hn::Mul(LoadUpTo(p + i, vocab - i), inverse), p + i, vocab - i);
    }
    p[targets[row]] -= 1.0f;
  }
}

void LossRows(int64_t rows, int64_t vocab, const float* logits, const int32_t* targets,
              float* losses) {
  for (int64_t row = 0; row < rows; ++row) {
    LossOfRow(vocab, logits + row * vocab, targets[row], nullptr, losses + row);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(GradientRows);
HWY_EXPORT(LossRows);

namespace {

constexpr int64_t kElementsPerTask = 16384;

int64_t RowsPerTask(int64_t vocab) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, vocab));
}

}  // namespace

void CrossEntropy(ThreadPool& pool, int64_t rows, int64_t vocab, float* logits,
                  const int32_t* targets, float* losses) {
  const int64_t per_task = RowsPerTask(vocab);
  pool.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    HWY_DYNAMIC_DISPATCH(GradientRows)
    (std::min(per_task, rows - row), vocab, logits + row * vocab, targets + row, losses + row);
  });
}

void CrossEntropyLoss(ThreadPool& pool, int64_t rows, int64_t vocab, const float* logits,
                      const int32_t* targets, float* losses) {
  const int64_t per_task = RowsPerTask(vocab);
  pool.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    HWY_DYNAMIC_DISPATCH(LossRows)
    (std::min(per_task, rows - row), vocab, logits + row * vocab, targets + row, losses + row);
  });
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
