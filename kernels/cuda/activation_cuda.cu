// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/activation_cuda.h"

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// (1 + tanh(z)) / 2 = 1 / (1 + e^(-2z)): one exponential and one division, as on the CPU. Here
// -2z = u (c1 + c3 u^2).
constexpr float kMinus2RootTwoOverPi = -1.5957691216057308f;  // -2 sqrt(2/pi)
constexpr float kMinus2Cubic = kMinus2RootTwoOverPi * 0.044715f;

struct Gelu {
  static __device__ __forceinline__ float OnePlusExp(float u) {
    return 1.0f + expf(u * (u * u * kMinus2Cubic + kMinus2RootTwoOverPi));
  }
  static __device__ __forceinline__ float Value(float u) { return u / OnePlusExp(u); }
  // gelu(u) = u s with s = 1 / (1 + e^(-2z)):  gelu'(u) = s + u s (1 - s) 2 z'(u).
  static __device__ __forceinline__ float Gradient(float dy, float u) {
    const float s = 1.0f / OnePlusExp(u);
    const float two_z_slope = u * u * (-3.0f * kMinus2Cubic) - kMinus2RootTwoOverPi;
    return dy * (s + u * s * ((1.0f - s) * two_z_slope));
  }
};

// Keeps NaNs.
struct Relu {
  static __device__ __forceinline__ float Value(float u) { return u < 0.0f ? 0.0f : u; }
  static __device__ __forceinline__ float Gradient(float dy, float u) {
    return u <= 0.0f ? 0.0f : dy;
  }
};

// See RowsOfVectors.
template <typename Function, typename T, bool kAtVectors>
__global__ void ForwardKernel(int64_t rows, int64_t width, const float* __restrict__ bias, T* pre,
                              T* __restrict__ y) {
  constexpr int kCount = kVector<T>;
  for (int64_t column = GlobalThread() * kCount; column < width; column += GridThreads() * kCount) {
    const int64_t left = width - column;
    float b[kCount] = {};
    if (bias != nullptr) LoadVectorOrRest<kAtVectors>(bias + column, left, b);
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
      const int64_t at = row * width + column;
      float u[kCount];
      LoadVectorOrRest<kAtVectors>(pre + at, left, u);
      if (bias != nullptr) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) u[i] = Widen(Narrow<T>(u[i] + b[i]));
        StoreVectorOrRest<kAtVectors>(u, left, pre + at);
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) u[i] = Function::Value(u[i]);
      StoreVectorOrRest<kAtVectors>(u, left, y + at);
    }
  }
}

template <typename Function, typename T, bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    BackwardKernel(int64_t n, const T* dy, const T* __restrict__ pre, T* dx) {
  constexpr int kCount = kVector<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GridThreads() * kCount) {
    float d[kCount], u[kCount];
    LoadVectorOrRest<kAtVectors>(dy + i, n - i, d);
    LoadVectorOrRest<kAtVectors>(pre + i, n - i, u);
#pragma unroll
    for (int j = 0; j < kCount; ++j) d[j] = Function::Gradient(d[j], u[j]);
    StoreVectorOrRest<kAtVectors>(d, n - i, dx + i);
  }
}

template <typename Function, typename T>
absl::Status LaunchForward(int64_t rows, int64_t width, const float* bias, T* pre, T* y,
                           const Stream& stream) {
  constexpr int kCount = kVector<T>;
  const bool at_vectors = AtVectors(bias, pre, y) && width % kCount == 0;
  const auto kernel =
      at_vectors ? &ForwardKernel<Function, T, true> : &ForwardKernel<Function, T, false>;
  return Launch(kernel, RowsOfVectors(rows, (width + kCount - 1) / kCount, stream), rows, width,
                bias, pre, y);
}

template <typename Function, typename T>
absl::Status LaunchBackward(int64_t n, const T* dy, const T* pre, T* dx, const Stream& stream) {
  constexpr int kCount = kVector<T>;
  const auto kernel = AtVectors(dy, pre, dx) ? &BackwardKernel<Function, T, true>
                                             : &BackwardKernel<Function, T, false>;
  return Launch(kernel, {GridStrideBlocks((n + kCount - 1) / kCount, kThreads), kThreads, stream},
                n, dy, pre, dx);
}

}  // namespace

template <typename T>
absl::Status BiasActivationForward(Activation activation, int64_t rows, int64_t width,
                                   const float* bias, T* pre, T* y, const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  return activation == Activation::kGelu ? LaunchForward<Gelu>(rows, width, bias, pre, y, stream)
                                         : LaunchForward<Relu>(rows, width, bias, pre, y, stream);
}

template <typename T>
absl::Status ActivationBackward(Activation activation, int64_t n, const T* dy, const T* pre, T* dx,
                                const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  return activation == Activation::kGelu ? LaunchBackward<Gelu>(n, dy, pre, dx, stream)
                                         : LaunchBackward<Relu>(n, dy, pre, dx, stream);
}

template absl::Status BiasActivationForward(Activation, int64_t, int64_t, const float*, float*,
                                            float*, const Stream&);
template absl::Status BiasActivationForward(Activation, int64_t, int64_t, const float*, Bf16*,
                                            Bf16*, const Stream&);
template absl::Status ActivationBackward(Activation, int64_t, const float*, const float*, float*,
                                         const Stream&);
template absl::Status ActivationBackward(Activation, int64_t, const Bf16*, const Bf16*, Bf16*,
                                         const Stream&);

}  // namespace tug::kernels::cuda
