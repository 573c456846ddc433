#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "kernels/adamw_cuda.h"

namespace tug::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks =
    132 * 16;  // a few per multiprocessor; the loop strides over the rest

// The arithmetic of AdamWStep, operation by operation (nvcc -fmad=false): the CPU's bits.
__global__ void AdamWKernel(int64_t n, AdamWParams params, AdamWConstants constants,
                            const float* __restrict__ g, const float* w_in, float* w_out,
                            float* __restrict__ m, float* __restrict__ v) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const float gradient = g[i] * params.gradient_scale;
    const float m_new = params.beta1 * m[i] + constants.one_minus_beta1 * gradient;
    const float v_new =
        constants.v_stays ? v[i]
                          : params.beta2 * v[i] + constants.one_minus_beta2 * (gradient * gradient);
    const float denominator = sqrtf(v_new) * constants.inverse_root_bc2 + params.eps;
    const float step = constants.step_size * (m_new / denominator);
    m[i] = m_new;
    v[i] = v_new;
    w_out[i] = w_in[i] * constants.decay - step;
  }
}

absl::Status StatusOf(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text =
      std::string(cudaGetErrorString(error)) + " (CUDA error " + std::to_string(error) + ")";
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorStubLibrary:
      return absl::UnavailableError("no GPU: " + text + "; use compute on the CPU");
    default:
      return absl::InternalError("AdamW on the GPU: " + text);
  }
}

}  // namespace

absl::Status CheckGpu() {
  void* probe = nullptr;
  if (absl::Status status = StatusOf(cudaMalloc(&probe, 4)); !status.ok()) return status;
  return StatusOf(cudaFree(probe));
}

absl::Status AdamWStepCuda(int64_t n, const AdamWParams& params, const float* g, const float* w_in,
                           float* w_out, float* m, float* v, void* stream) {
  if (n == 0) return absl::OkStatus();
  const int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMaxBlocks);
  AdamWKernel<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      n, params, MakeAdamWConstants(params), g, w_in, w_out, m, v);
  return StatusOf(cudaGetLastError());
}

}  // namespace tug::kernels
