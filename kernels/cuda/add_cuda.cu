// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/add_cuda.h"

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    AddKernel(const T* a, const T* __restrict__ b, T* sum, int64_t n) {
  constexpr int kCount = kVector<T>;
  for (int64_t i = GlobalThread() * kCount; i < n; i += GridThreads() * kCount) {
    float x[kCount], y[kCount];
    LoadVectorOrRest<kAtVectors>(a + i, n - i, x);
    LoadVectorOrRest<kAtVectors>(b + i, n - i, y);
#pragma unroll
    for (int j = 0; j < kCount; ++j) x[j] += y[j];
    StoreVectorOrRest<kAtVectors>(x, n - i, sum + i);
  }
}

template <typename T>
absl::Status LaunchAdd(const T* a, const T* b, T* sum, int64_t n, const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  constexpr int kCount = kVector<T>;
  const auto kernel = AtVectors(a, b, sum) ? &AddKernel<T, true> : &AddKernel<T, false>;
  return Launch(kernel, {GridStrideBlocks((n + kCount - 1) / kCount, kThreads), kThreads, stream},
                a, b, sum, n);
}

}  // namespace

absl::Status Add(const float* a, const float* b, float* sum, int64_t n, const Stream& stream) {
  return LaunchAdd(a, b, sum, n, stream);
}
absl::Status Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n, const Stream& stream) {
  return LaunchAdd(a, b, sum, n, stream);
}

}  // namespace tug::kernels::cuda
