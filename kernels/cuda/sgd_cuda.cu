// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sgd_cuda.h"

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kCount = kVector<float>;

// The arithmetic of the CPU's SgdStep, operation by operation (nvcc -fmad=false), which gives its
// bits.
template <bool kMomentum, bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    SgdKernel(int64_t n, SgdParams params, const float* __restrict__ g, const float* w_in,
              float* w_out, float* __restrict__ u, Bf16* __restrict__ w_out_bf16) {
  for (int64_t i = GlobalThread() * kCount; i < n; i += GridThreads() * kCount) {
    const int64_t left = n - i;
    float w[kCount], gradient[kCount], velocity[kCount];
    LoadVectorOrRest<kAtVectors>(g + i, left, gradient);
    LoadVectorOrRest<kAtVectors>(w_in + i, left, w);
    if constexpr (kMomentum) LoadVectorOrRest<kAtVectors>(u + i, left, velocity);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float direction = gradient[j] * params.gradient_scale + params.weight_decay * w[j];
      if constexpr (kMomentum) {
        velocity[j] = params.momentum * velocity[j] + direction;
        direction = params.nesterov ? direction + params.momentum * velocity[j] : velocity[j];
      }
      w[j] = w[j] - params.lr * direction;
    }
    if constexpr (kMomentum) StoreVectorOrRest<kAtVectors>(velocity, left, u + i);
    StoreVectorOrRest<kAtVectors>(w, left, w_out + i);
    if (w_out_bf16 != nullptr) StoreVectorOrRest<kAtVectors>(w, left, w_out_bf16 + i);
  }
}

}  // namespace

absl::Status SgdStep(const SgdParams& params, const SgdArgs& a, const Stream& stream) {
  if (a.n == 0) return absl::OkStatus();
  const bool at_vectors = AtVectors(a.g, a.w_in, a.w_out, a.u, a.w_out_bf16);
  const auto kernel = params.momentum == 0
                          ? (at_vectors ? &SgdKernel<false, true> : &SgdKernel<false, false>)
                          : (at_vectors ? &SgdKernel<true, true> : &SgdKernel<true, false>);
  return Launch(kernel, {GridStrideBlocks((a.n + kCount - 1) / kCount, kThreads), kThreads, stream},
                a.n, params, a.g, a.w_in, a.w_out, a.u, a.w_out_bf16);
}

}  // namespace tug::kernels::cuda
