#include "kernels/layernorm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/dropout_keeper.h"

#ifndef TUG_KERNELS_LAYERNORM_CPU_ONCE_
#define TUG_KERNELS_LAYERNORM_CPU_ONCE_
namespace tug::kernels {

// Arguments of ResidualLayerNormForward.
template <typename T>
struct Residual {
  int64_t seq;
  int64_t width;
  const T* x;
  const float* bias;
  const T* residual;
  DropoutKeeper keeper;
  const float* gamma;
  const float* beta;
  T* sum;
  T* y;
  float* mean;
  float* rstd;
};

}  // namespace tug::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layernorm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/bf16-inl.h"
#include "kernels/dropout-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// One row: its mean, then its variance about that mean, then the result.
template <typename T>
HWY_INLINE void ForwardRow(int64_t width, const T* x, const float* gamma, const float* beta, T* y,
                           float* mean_out, float* rstd_out) {
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
  *mean_out = mean;
  *rstd_out = rstd;
}

template <typename T>
void ForwardRows(int64_t rows, int64_t width, const T* x, const float* gamma, const float* beta,
                 T* y, float* mean, float* rstd) {
  for (int64_t row = 0; row < rows; ++row) {
    ForwardRow(width, x + row * width, gamma, beta, y + row * width, mean + row, rstd + row);
  }
}

// Rows [begin, end) of all; a row's sum is still in the nearest cache when it is normalised.
template <typename T>
void ResidualRows(int64_t begin, int64_t end, const Residual<T>& a) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t sample = row / a.seq;
    const int64_t element = row % a.seq * a.width;  // of the sample
    const int64_t at = sample * a.seq * a.width;
    DropoutAddRange(a.keeper, static_cast<uint32_t>(sample), element, element + a.width, a.width,
                    a.x + at, a.bias, a.residual + at, a.sum + at);
    ForwardRow(a.width, a.sum + row * a.width, a.gamma, a.beta, a.y + row * a.width, a.mean + row,
               a.rstd + row);
  }
}

// With normal = (x - mean) rstd and g = dy gamma:  dx = rstd (g - mean(g) - normal mean(g
// normal)), plus dx as it was to accumulate. The row's share of dgamma and dbeta goes to
// dgamma[width] and dbeta[width].
template <bool kAccumulate, typename T>
HWY_INLINE void BackwardRow(int64_t width, const T* dy, const T* x, const float* gamma, float mean,
                            float rstd, T* dx, float* dgamma, float* dbeta) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto mean_v = hn::Set(d, mean);
  const auto rstd_v = hn::Set(d, rstd);
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

template <typename T>
void BackwardRows(int64_t rows, int64_t width, const T* dy, const T* x, const float* gamma,
                  const float* mean, const float* rstd, bool accumulate, T* dx, float* dgamma,
                  float* dbeta) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * width;
    if (accumulate) {
      BackwardRow</*kAccumulate=*/true>(width, dy + at, x + at, gamma, mean[row], rstd[row],
                                        dx + at, dgamma, dbeta);
    } else {
      BackwardRow</*kAccumulate=*/false>(width, dy + at, x + at, gamma, mean[row], rstd[row],
                                         dx + at, dgamma, dbeta);
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

// Rows of a task, whatever the shape: the order in which dgamma is summed must not follow the width
// either.
constexpr int64_t kRowsPerTask = 64;

}  // namespace

template <typename T>
void LayerNormForward(ThreadPool& pool, int64_t rows, int64_t width, const T* x, const float* gamma,
                      const float* beta, T* y, float* mean, float* rstd) {
  pool.ParallelFor((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    TUG_DISPATCH(ForwardRows, T)
    (std::min(kRowsPerTask, rows - row), width, x + row * width, gamma, beta, y + row * width,
     mean + row, rstd + row);
  });
}

template <typename T>
void ResidualLayerNormForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                              const T* x, const float* bias, const T* residual, float p,
                              const DropoutKey& key, const float* gamma, const float* beta, T* sum,
                              T* y, float* mean, float* rstd) {
  const int64_t rows = samples * seq;
  if (rows == 0 || width == 0) return;
  TUG_CHECK_LE(seq * width, kMaxDropoutElements);
  const Residual<T> arguments{seq,   width, x,   bias, residual, MakeDropoutKeeper(key, p),
                              gamma, beta,  sum, y,    mean,     rstd};
  pool.ParallelFor((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    TUG_DISPATCH(ResidualRows, T)(row, std::min(rows, row + kRowsPerTask), arguments);
  });
}

template <typename T>
void LayerNormBackward(ThreadPool& pool, int64_t rows, int64_t width, const T* dy, const T* x,
                       const float* gamma, const float* mean, const float* rstd, bool accumulate,
                       T* dx, float* dgamma, float* dbeta) {
  if (rows == 0 || width == 0) return;
  const int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<float> parts(static_cast<size_t>(tasks * 2 * width), 0.0f);  // [tasks][2][width]
  pool.ParallelFor(tasks, [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    const int64_t at = row * width;
    float* part = parts.data() + task * 2 * width;
    TUG_DISPATCH(BackwardRows, T)
    (std::min(kRowsPerTask, rows - row), width, dy + at, x + at, gamma, mean + row, rstd + row,
     accumulate, dx + at, part, part + width);
  });
  HWY_DYNAMIC_DISPATCH(AddParts)(tasks, 2 * width, width, parts.data(), dgamma);
  if (dbeta == nullptr) return;
  HWY_DYNAMIC_DISPATCH(AddParts)(tasks, 2 * width, width, parts.data() + width, dbeta);
}

template void LayerNormForward(ThreadPool&, int64_t, int64_t, const float*, const float*,
                               const float*, float*, float*, float*);
template void ResidualLayerNormForward(ThreadPool&, int64_t, int64_t, int64_t, const float*,
                                       const float*, const float*, float, const DropoutKey&,
                                       const float*, const float*, float*, float*, float*, float*);
template void LayerNormBackward(ThreadPool&, int64_t, int64_t, const float*, const float*,
                                const float*, const float*, const float*, bool, float*, float*,
                                float*);
template void LayerNormForward(ThreadPool&, int64_t, int64_t, const Bf16*, const float*,
                               const float*, Bf16*, float*, float*);
template void ResidualLayerNormForward(ThreadPool&, int64_t, int64_t, int64_t, const Bf16*,
                                       const float*, const Bf16*, float, const DropoutKey&,
                                       const float*, const float*, Bf16*, Bf16*, float*, float*);
template void LayerNormBackward(ThreadPool&, int64_t, int64_t, const Bf16*, const Bf16*,
                                const float*, const float*, const float*, bool, Bf16*, float*,
                                float*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
