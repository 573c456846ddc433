#include "kernels/add_cuda.h"

#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void AddKernel(const T* a, const T* __restrict__ b, T* sum, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GridThreads()) {
    sum[i] = Narrow<T>(Widen(a[i]) + Widen(b[i]));
  }
}

template <typename T>
absl::Status LaunchAdd(const T* a, const T* b, T* sum, int64_t n, const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  return Launch(AddKernel<T>, {GridStrideBlocks(n, kThreads), kThreads, stream}, a, b, sum, n);
}

}  // namespace

absl::Status Add(const float* a, const float* b, float* sum, int64_t n, const Stream& stream) {
  return LaunchAdd(a, b, sum, n, stream);
}
absl::Status Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n, const Stream& stream) {
  return LaunchAdd(a, b, sum, n, stream);
}

}  // namespace tug::kernels::cuda
