#include "kernels/activation_cuda.h"

#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxRowBlocks = 1024;

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

// Written so that a NaN stays one.
struct Relu {
  static __device__ __forceinline__ float Value(float u) { return u < 0.0f ? 0.0f : u; }
  static __device__ __forceinline__ float Gradient(float dy, float u) {
    return u <= 0.0f ? 0.0f : dy;
  }
};

// Blocks lie along rows (x) and over them (y): no division finds an element's column.
template <typename Function, typename T>
__global__ void ForwardKernel(int64_t rows, int64_t width, const float* __restrict__ bias, T* pre,
                              T* __restrict__ y) {
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    for (int64_t column = GlobalThread(); column < width; column += GridThreads()) {
      const int64_t i = row * width + column;
      float u = Widen(pre[i]);
      if (bias != nullptr) {
        const T stored = Narrow<T>(u + bias[column]);
        pre[i] = stored;
        u = Widen(stored);
      }
      y[i] = Narrow<T>(Function::Value(u));
    }
  }
}

template <typename Function, typename T>
__global__ void BackwardKernel(int64_t n, const T* dy, const T* __restrict__ pre, T* dx) {
  for (int64_t i = GlobalThread(); i < n; i += GridThreads()) {
    dx[i] = Narrow<T>(Function::Gradient(Widen(dy[i]), Widen(pre[i])));
  }
}

}  // namespace

template <typename T>
absl::Status BiasActivationForward(Activation activation, int64_t rows, int64_t width,
                                   const float* bias, T* pre, T* y, const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  const dim3 grid(GridStrideBlocks(width, kThreads),
                  static_cast<unsigned>(rows < kMaxRowBlocks ? rows : kMaxRowBlocks));
  const auto kernel =
      activation == Activation::kGelu ? &ForwardKernel<Gelu, T> : &ForwardKernel<Relu, T>;
  return Launch(kernel, {grid, kThreads, stream}, rows, width, bias, pre, y);
}

template <typename T>
absl::Status ActivationBackward(Activation activation, int64_t n, const T* dy, const T* pre, T* dx,
                                const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  const auto kernel =
      activation == Activation::kGelu ? &BackwardKernel<Gelu, T> : &BackwardKernel<Relu, T>;
  return Launch(kernel, {GridStrideBlocks(n, kThreads), kThreads, stream}, n, dy, pre, dx);
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
