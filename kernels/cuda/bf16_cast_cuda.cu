// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bf16_cast_cuda.h"

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kCount = kVector<Bf16>;

template <typename From, typename To, bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    CastKernel(const From* __restrict__ src, To* __restrict__ dst, int64_t n) {
  for (int64_t i = GlobalThread() * kCount; i < n; i += GridThreads() * kCount) {
    float x[kCount];
    LoadVectorOrRest<kAtVectors>(src + i, n - i, x);
    StoreVectorOrRest<kAtVectors>(x, n - i, dst + i);
  }
}

template <typename From, typename To>
absl::Status LaunchCast(const From* src, To* dst, int64_t n, const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  const bool at_vectors = AtVectors(src, dst);
  const auto kernel = at_vectors ? &CastKernel<From, To, true> : &CastKernel<From, To, false>;
  return Launch(kernel, {GridStrideBlocks((n + kCount - 1) / kCount, kThreads), kThreads, stream},
                src, dst, n);
}

}  // namespace

absl::Status Bf16FromFloat(const float* src, Bf16* dst, int64_t n, const Stream& stream) {
  return LaunchCast(src, dst, n, stream);
}
absl::Status FloatFromBf16(const Bf16* src, float* dst, int64_t n, const Stream& stream) {
  return LaunchCast(src, dst, n, stream);
}

}  // namespace tug::kernels::cuda
