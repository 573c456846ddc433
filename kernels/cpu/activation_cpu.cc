// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

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

struct Gelu {
  static HWY_INLINE FloatVector Value(FloatVector u) {
    return hn::Div(u, OnePlusExp(u, hn::Mul(u, u)));
  }

  // gelu(u) = u s with s = 1 / (1 + e^(-2z)):  gelu'(u) = s + u s (1 - s) 2 z'(u).
  static HWY_INLINE FloatVector Gradient(FloatVector dy, FloatVector u) {
    const FloatTag d;
    const auto one = hn::Set(d, 1.0f);
    const auto u_squared = hn::Mul(u, u);
    const auto s = hn::Div(one, OnePlusExp(u, u_squared));
    const auto two_z_slope =
        hn::MulAdd(u_squared, hn::Set(d, -3.0f * kMinus2Cubic), hn::Set(d, -kMinus2RootTwoOverPi));
    const auto bend = hn::Mul(hn::Mul(u, s), hn::Mul(hn::Sub(one, s), two_z_slope));
    return hn::Mul(dy, hn::Add(s, bend));
  }
};

// Keeps NaNs: the vector maximum of a NaN and 0 would be 0.
struct Relu {
  static HWY_INLINE FloatVector Value(FloatVector u) {
    return hn::IfThenZeroElse(hn::Lt(u, hn::Zero(FloatTag())), u);
  }
  static HWY_INLINE FloatVector Gradient(FloatVector dy, FloatVector u) {
    return hn::IfThenZeroElse(hn::Le(u, hn::Zero(FloatTag())), dy);
  }
};

// One row. With `bias` nullptr, pre is only read.
template <typename Function, typename T>
HWY_INLINE void ForwardRow(int64_t width, const float* bias, T* HWY_RESTRICT pre,
                           T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < width; i += FloatLanes()) {
    const int64_t left = width - i;
    auto u = LoadUpTo(pre + i, left);
    if (bias != nullptr) {
      u = StoreAndReload(hn::Add(u, LoadUpTo(bias + i, left)), pre + i, left);
    }
    StoreUpTo(Function::Value(u), y + i, left);
  }
}

template <typename T>
void ForwardRows(Activation activation, int64_t rows, int64_t width, int64_t stride,
                 const float* bias, T* pre, T* y) {
  for (int64_t at = 0; at < rows * stride; at += stride) {
    if (activation == Activation::kGelu) {
      ForwardRow<Gelu>(width, bias, pre + at, y + at);
    } else {
      ForwardRow<Relu>(width, bias, pre + at, y + at);
    }
  }
}

template <typename Function, typename T>
HWY_INLINE void BackwardOf(int64_t n, const T* dy, const T* pre, T* dx) {
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const int64_t left = n - i;
    StoreUpTo(Function::Gradient(LoadUpTo(dy + i, left), LoadUpTo(pre + i, left)), dx + i, left);
  }
}

template <typename T>
void BackwardRange(Activation activation, int64_t n, const T* dy, const T* pre, T* dx) {
  if (activation == Activation::kGelu) {
    BackwardOf<Gelu>(n, dy, pre, dx);
  } else {
    BackwardOf<Relu>(n, dy, pre, dx);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {
namespace {

constexpr int64_t kElementsPerTask = 16384;

}  // namespace

template <typename T>
void BiasActivationTile(Activation activation, int64_t rows, int64_t width, int64_t stride,
                        const float* bias, T* pre, T* y) {
  TUG_DISPATCH(ForwardRows, T)(activation, rows, width, stride, bias, pre, y);
}

template <typename T>
void BiasActivationForward(ThreadPool& pool, Activation activation, int64_t rows, int64_t width,
                           const float* bias, T* pre, T* y) {
  if (rows == 0 || width == 0) return;
  const int64_t per_task = std::max<int64_t>(1, kElementsPerTask / width);
  pool.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    BiasActivationTile(activation, std::min(per_task, rows - row), width, width, bias,
                       pre + row * width, y + row * width);
  });
}

template <typename T>
void ActivationBackward(ThreadPool& pool, Activation activation, int64_t n, const T* dy,
                        const T* pre, T* dx) {
  pool.ParallelFor((n + kElementsPerTask - 1) / kElementsPerTask, [&](int64_t task) {
    const int64_t i = task * kElementsPerTask;
    TUG_DISPATCH(BackwardRange, T)
    (activation, std::min(kElementsPerTask, n - i), dy + i, pre + i, dx + i);
  });
}

template void BiasActivationForward(ThreadPool&, Activation, int64_t, int64_t, const float*, float*,
                                    float*);
template void BiasActivationForward(ThreadPool&, Activation, int64_t, int64_t, const float*, Bf16*,
                                    Bf16*);
template void BiasActivationTile(Activation, int64_t, int64_t, int64_t, const float*, float*,
                                 float*);
template void BiasActivationTile(Activation, int64_t, int64_t, int64_t, const float*, Bf16*, Bf16*);
template void ActivationBackward(ThreadPool&, Activation, int64_t, const float*, const float*,
                                 float*);
template void ActivationBackward(ThreadPool&, Activation, int64_t, const Bf16*, const Bf16*, Bf16*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
