#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"
#include "kernels/linear_elements_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxRowBlocks = 1024;

// Blocks lie along rows (x) and over them (y): no division finds an element's column.
template <typename T>
__global__ void AddBiasKernel(int64_t rows, int64_t width, const float* __restrict__ bias, T* y) {
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    for (int64_t column = GlobalThread(); column < width; column += GridThreads()) {
      T* const at = y + row * width + column;
      *at = Narrow<T>(Widen(*at) + bias[column]);
    }
  }
}

}  // namespace

template <typename T>
absl::Status AddBias(int64_t rows, int64_t width, const float* bias, T* y, const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  const dim3 grid(GridStrideBlocks(width, kThreads),
                  static_cast<unsigned>(rows < kMaxRowBlocks ? rows : kMaxRowBlocks));
  return Launch(AddBiasKernel<T>, {grid, kThreads, stream}, rows, width, bias, y);
}

template absl::Status AddBias(int64_t, int64_t, const float*, float*, const Stream&);
template absl::Status AddBias(int64_t, int64_t, const float*, Bf16*, const Stream&);

}  // namespace tug::kernels::cuda
