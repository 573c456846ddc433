// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/dropout_keeper.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layernorm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/dropout-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// One row: its mean, the variance about that mean, then the result.
template <typename T>
HWY_INLINE void ForwardRow(const LayerNormForwardArgs<T>& a, int64_t row) {
  const int64_t width = a.width;
  const T* const x = a.x + row * width;
  T* const y = a.y + row * width;
  const float* const gamma = a.gamma;
  const float* const beta = a.beta;
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const float inverse_width = 1.0f / static_cast<float>(width);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < width; i += lanes) sum = hn::Add(sum, LoadUpTo(x + i, width - i));
  const float mean = SumLanes(sum) * inverse_width;
  const auto mean_v = hn::Set(d, mean);
  auto squares = hn::Zero(d);
  for (int64_t i = 0; i < width; i += lanes) {
    const auto centred =
        KeepUpTo(hn::Sub(LoadUpTo(x + i, width - i), mean_v), width - i, hn::Zero(d));
    squares = hn::MulAdd(centred, centred, squares);
  }
  const float rstd = 1.0f / std::sqrt(SumLanes(squares) * inverse_width + kLayerNormEpsilon);
  const auto rstd_v = hn::Set(d, rstd);
  for (int64_t i = 0; i < width; i += lanes) {
    const int64_t left = width - i;
    const auto normal = hn::Mul(hn::Sub(LoadUpTo(x + i, left), mean_v), rstd_v);
    const auto shift = beta == nullptr ? hn::Zero(d) : LoadUpTo(beta + i, left);
    StoreUpTo(hn::MulAdd(normal, LoadUpTo(gamma + i, left), shift), y + i, left);
  }
  a.mean[row] = mean;
  a.rstd[row] = rstd;
}

template <typename T>
void ForwardRows(int64_t begin, int64_t end, const LayerNormForwardArgs<T>& a) {
  for (int64_t row = begin; row < end; ++row) ForwardRow(a, row);
}

// A row's sum is still in the nearest cache when it is normalized.
template <typename T>
void ResidualRows(int64_t begin, int64_t end, const ResidualLayerNormForwardArgs<T>& a,
                  const DropoutKeeper& keeper) {
  const LayerNormForwardArgs<T> norm = a.norm();
  const int64_t seq = a.add.elements_per_sample / a.add.width;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t element = row % seq * a.add.width;  // index within the sample
    DropoutAddRange(a.add, keeper, row / seq, element, element + a.add.width);
    ForwardRow(norm, row);
  }
}

// With normal = (x - mean) rstd and g = dy gamma:
//   dx = rstd (g - mean(g) - normal mean(g normal)), plus the old dx to accumulate
// The row's share of dgamma and dbeta is added to dgamma[width] and dbeta[width].
template <bool kAccumulate, typename T>
HWY_INLINE void BackwardRow(const LayerNormBackwardArgs<T>& a, int64_t row, float* dgamma,
                            float* dbeta) {
  const int64_t width = a.width;
  const T* const dy = a.dy + row * width;
  const T* const x = a.x + row * width;
  T* const dx = a.dx + row * width;
  const float* const gamma = a.gamma;
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto mean_v = hn::Set(d, a.mean[row]);
  const auto rstd_v = hn::Set(d, a.rstd[row]);
  auto sum_g = hn::Zero(d);
  auto sum_g_normal = hn::Zero(d);
  for (int64_t i = 0; i < width; i += lanes) {
    const int64_t left = width - i;
    const auto dy_v = LoadUpTo(dy + i, left);
    const auto normal = hn::Mul(hn::Sub(LoadUpTo(x + i, left), mean_v), rstd_v);
    const auto g = hn::Mul(dy_v, LoadUpTo(gamma + i, left));  // 0 beyond the end
    sum_g = hn::Add(sum_g, g);
    sum_g_normal = hn::MulAdd(g, normal, sum_g_normal);
    StoreUpTo(hn::MulAdd(dy_v, normal, LoadUpTo(dgamma + i, left)), dgamma + i, left);
    StoreUpTo(hn::Add(dy_v, LoadUpTo(dbeta + i, left)), dbeta + i, left);
  }
  const float inverse_width = 1.0f / static_cast<float>(width);
  const auto mean_g = hn::Set(d, SumLanes(sum_g) * inverse_width);
  const auto mean_g_normal = hn::Set(d, SumLanes(sum_g_normal) * inverse_width);
  for (int64_t i = 0; i < width; i += lanes) {
    const int64_t left = width - i;
    const auto normal = hn::Mul(hn::Sub(LoadUpTo(x + i, left), mean_v), rstd_v);
    const auto g = hn::Mul(LoadUpTo(dy + i, left), LoadUpTo(gamma + i, left));
    const auto inner = hn::NegMulAdd(normal, mean_g_normal, hn::Sub(g, mean_g));
    const auto before = kAccumulate ? LoadUpTo(dx + i, left) : hn::Zero(d);
    StoreUpTo(hn::MulAdd(inner, rstd_v, before), dx + i, left);
  }
}

// Adds the rows' share of dgamma and dbeta to `part` [2][width].
template <typename T>
void BackwardRows(int64_t begin, int64_t end, const LayerNormBackwardArgs<T>& a, float* part) {
  for (int64_t row = begin; row < end; ++row) {
    if (a.accumulate) {
      BackwardRow</*kAccumulate=*/true>(a, row, part, part + a.width);
    } else {
      BackwardRow</*kAccumulate=*/false>(a, row, part, part + a.width);
    }
  }
}

// total[i] += parts[0][i] + parts[1][i] + ..., in this order.
void AddParts(int64_t parts, int64_t stride, int64_t width, const float* part, float* total) {
  for (int64_t i = 0; i < width; i += FloatLanes()) {
    auto sum = LoadUpTo(part + i, width - i);
    for (int64_t p = 1; p < parts; ++p) {
      sum = hn::Add(sum, LoadUpTo(part + p * stride + i, width - i));
    }
    StoreUpTo(hn::Add(LoadUpTo(total + i, width - i), sum), total + i, width - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(AddParts);

namespace {

// Rows per task, fixed for all shapes: the order in which dgamma is summed must not depend on the
// width either.
constexpr int64_t kRowsPerTask = 64;

int64_t TasksOf(int64_t rows) { return (rows + kRowsPerTask - 1) / kRowsPerTask; }

// Calls f(task, first row, end) for each task.
template <typename F>
void ForEachTask(ThreadPool& pool, int64_t rows, const F& f) {
  pool.ParallelFor(TasksOf(rows), [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    f(task, row, std::min(rows, row + kRowsPerTask));
  });
}

}  // namespace

template <typename T>
void LayerNormForward(ThreadPool& pool, const LayerNormForwardArgs<T>& a) {
  ForEachTask(pool, a.rows, [&](int64_t, int64_t begin, int64_t end) {
    TUG_DISPATCH(ForwardRows, T)(begin, end, a);
  });
}

template <typename T>
void ResidualLayerNormForward(ThreadPool& pool, const ResidualLayerNormForwardArgs<T>& a) {
  if (a.add.width == 0 || a.rows() == 0) return;
  TUG_CHECK_LE(a.add.elements_per_sample, kMaxDropoutElements);
  const DropoutKeeper keeper = MakeDropoutKeeper(a.add.key, a.add.p);
  ForEachTask(pool, a.rows(), [&](int64_t, int64_t begin, int64_t end) {
    TUG_DISPATCH(ResidualRows, T)(begin, end, a, keeper);
  });
}

template <typename T>
void LayerNormBackward(ThreadPool& pool, const LayerNormBackwardArgs<T>& a) {
  if (a.rows == 0 || a.width == 0) return;
  const int64_t tasks = TasksOf(a.rows), stride = 2 * a.width;
  std::vector<float> parts(static_cast<size_t>(tasks * stride), 0.0f);  // [tasks][2][width]
  ForEachTask(pool, a.rows, [&](int64_t task, int64_t begin, int64_t end) {
    TUG_DISPATCH(BackwardRows, T)(begin, end, a, parts.data() + task * stride);
  });
  HWY_DYNAMIC_DISPATCH(AddParts)(tasks, stride, a.width, parts.data(), a.dgamma);
  if (a.dbeta == nullptr) return;
  HWY_DYNAMIC_DISPATCH(AddParts)(tasks, stride, a.width, parts.data() + a.width, a.dbeta);
}

template void LayerNormForward(ThreadPool&, const LayerNormForwardArgs<float>&);
template void LayerNormForward(ThreadPool&, const LayerNormForwardArgs<Bf16>&);
template void ResidualLayerNormForward(ThreadPool&, const ResidualLayerNormForwardArgs<float>&);
template void ResidualLayerNormForward(ThreadPool&, const ResidualLayerNormForwardArgs<Bf16>&);
template void LayerNormBackward(ThreadPool&, const LayerNormBackwardArgs<float>&);
template void LayerNormBackward(ThreadPool&, const LayerNormBackwardArgs<Bf16>&);

}  // namespace tug::kernels
#endif  // HWY_ONCE
