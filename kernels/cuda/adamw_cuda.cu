// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/adamw_cuda.h"

#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// The arithmetic of the CPU's AdamWStep, operation by operation (nvcc -fmad=false), which gives its
// bits. Arrays of `a` that do not overlap others are separate parameters, since nvcc ignores
// __restrict__ on members.
__global__ void AdamWKernel(AdamWParams params, AdamWConstants constants, AdamWArgs a,
                            const float* __restrict__ g, float* __restrict__ m,
                            float* __restrict__ v, Bf16* __restrict__ w_out_bf16) {
  for (int64_t i = GlobalThread(); i < a.n; i += GridThreads()) {
    const float gradient = g[i] * params.gradient_scale;
    const float m_new = params.beta1 * m[i] + constants.one_minus_beta1 * gradient;
    const float v_new =
        constants.v_stays ? v[i]
                          : params.beta2 * v[i] + constants.one_minus_beta2 * (gradient * gradient);
    const float denominator = sqrtf(v_new) * constants.inverse_root_bc2 + params.eps;
    const float step = constants.step_size * (m_new / denominator);
    const float w_new = a.w_in[i] * constants.decay - step;
    m[i] = m_new;
    v[i] = v_new;
    a.w_out[i] = w_new;
    if (w_out_bf16 != nullptr) w_out_bf16[i] = Narrow<Bf16>(w_new);
  }
}

}  // namespace

absl::Status AdamWStep(const AdamWParams& params, const AdamWArgs& a, const Stream& stream) {
  if (a.n == 0) return absl::OkStatus();
  return Launch(AdamWKernel, {GridStrideBlocks(a.n, kThreads), kThreads, stream}, params,
                MakeAdamWConstants(params), a, a.g, a.m, a.v, a.w_out_bf16);
}

}  // namespace tug::kernels::cuda
