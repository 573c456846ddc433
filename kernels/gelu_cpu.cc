#include <algorithm>

#include "kernels/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gelu_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// (1 + tanh(z)) / 2 = 1 / (1 + e^(-2z)): one exponential and one division. Here -2z = u (c1 + c3
// u^2).
constexpr float kMinus2RootTwoOverPi = -1.5957691216057308f;  // -2 sqrt(2/pi)
constexpr float kMinus2Cubic = kMinus2RootTwoOverPi * 0.044715f;

HWY_INLINE FloatVector OnePlusExp(FloatVector u, FloatVector u_squared) {
  const FloatTag d;
  const auto slope =
      hn::MulAdd(u_squared, hn::Set(d, kMinus2Cubic), hn::Set(d, kMinus2RootTwoOverPi));
  return hn::Add(hn::Set(d, 1.0f), Exp(hn::Mul(u, slope)));
}

// One row. `bias` nullptr: pre is only read.
HWY_INLINE void ForwardRow(int64_t width, const float* bias, float* HWY_RESTRICT pre,
                           float* HWY_RESTRICT y) {
  for (int64_t i = 0; i < width; i += FloatLanes()) {
    const int64_t left = width - i;
    auto u = LoadUpTo(pre + i, left);
    if (bias != nullptr) {
      u = hn::Add(u, LoadUpTo(bias + i, left));
      StoreUpTo(u, pre + i, left);
    }
    StoreUpTo(hn::Div(u, OnePlusExp(u, hn::Mul(u, u))), y + i, left);
  }
}

void ForwardRows(int64_t rows, int64_t width, const float* bias, float* pre, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    ForwardRow(width, bias, pre + row * width, y + row * width);
  }
}

// gelu(u) = u s with s = 1 / (1 + e^(-2z)):  gelu'(u) = s + u s (1 - s) 2 z'(u).
void BackwardRange(int64_t n, const float* dy, const float* pre, float* dx) {
  const FloatTag d;
  const auto one = hn::Set(d, 1.0f);
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const int64_t left = n - i;
    const auto u = LoadUpTo(pre + i, left);
    const auto u_squared = hn::Mul(u, u);
    const auto s = hn::Div(one, OnePlusExp(u, u_squared));
    const auto two_z_slope =
        hn::MulAdd(u_squared, hn::Set(d, -3.0f * kMinus2Cubic), hn::Set(d, -kMinus2RootTwoOverPi));
    const auto bend = hn::Mul(hn::Mul(u, s), hn::Mul(hn::Sub(one, s), two_z_slope));
    StoreUpTo(hn::Mul(LoadUpTo(dy + i, left), hn::Add(s, bend)), dx + i, left);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(ForwardRows);
HWY_EXPORT(BackwardRange);

namespace {

constexpr int64_t kElementsPerTask = 16384;

}  // namespace

void BiasGeluForward(ThreadPool& pool, int64_t rows, int64_t width, const float* bias, float* pre,
                     float* y) {
  if (rows == 0 || width == 0) return;
  const int64_t per_task = std::max<int64_t>(1, kElementsPerTask / width);
  pool.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    HWY_DYNAMIC_DISPATCH(ForwardRows)
    (std::min(per_task, rows - row), width, bias, pre + row * width, y + row * width);
  });
}

void GeluBackward(ThreadPool& pool, int64_t n, const float* dy, const float* pre, float* dx) {
  pool.ParallelFor((n + kElementsPerTask - 1) / kElementsPerTask, [&](int64_t task) {
    const int64_t i = task * kElementsPerTask;
    HWY_DYNAMIC_DISPATCH(BackwardRange)(std::min(kElementsPerTask, n - i), dy + i, pre + i, dx + i);
  });
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
