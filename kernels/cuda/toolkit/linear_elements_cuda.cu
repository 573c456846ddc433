// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/linear_elements_cuda.h"

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

// See RowsOfVectors.
template <typename B, typename T, bool kAtVectors>
__global__ void AddBiasKernel(int64_t rows, int64_t width, const B* __restrict__ bias, T* y,
                              int64_t y_stride) {
  constexpr int kCount = kVector<T>;
  for (int64_t column = GlobalThread() * kCount; column < width; column += GridThreads() * kCount) {
    float b[kCount];
    LoadVectorOrRest<kAtVectors>(bias + column, width - column, b);
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
      T* const at = y + row * y_stride + column;
      float x[kCount];
      LoadVectorOrRest<kAtVectors>(at, width - column, x);
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] += b[i];
      StoreVectorOrRest<kAtVectors>(x, width - column, at);
    }
  }
}

}  // namespace

template <typename B, typename T>
absl::Status AddBias(int64_t rows, int64_t width, const B* bias, T* y, int64_t y_stride,
                     const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  constexpr int kCount = kVector<T>;
  const bool at_vectors = AtVectors(bias, y) && y_stride % kCount == 0;
  const auto kernel = at_vectors ? &AddBiasKernel<B, T, true> : &AddBiasKernel<B, T, false>;
  return Launch(kernel, RowsOfVectors(rows, (width + kCount - 1) / kCount, stream), rows, width,
                bias, y, y_stride);
}

template absl::Status AddBias(int64_t, int64_t, const float*, float*, int64_t, const Stream&);
template absl::Status AddBias(int64_t, int64_t, const float*, Bf16*, int64_t, const Stream&);
template absl::Status AddBias(int64_t, int64_t, const Bf16*, Bf16*, int64_t, const Stream&);

}  // namespace tug::kernels::cuda
