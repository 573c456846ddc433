// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_BENCHMARK_CUDA_PEAKS_H_
#define TUG_KERNELS_CUDA_BENCHMARK_CUDA_PEAKS_H_

#include "absl/status/status.h"
#include "kernels/cuda/device/cuda_benchmark.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"

namespace tug::kernels::cuda {

// Peak rates of a GPU, measured first in a benchmark as references for the other lines.

// Times a copy of 512 MiB.
absl::Status TimeCopy(CudaBenchmark& benchmark);

// Times the product of two matrices of 8,192 x 8,192 elements T: float or Bf16.
template <typename T>
absl::Status TimeSquareProduct(CudaBenchmark& benchmark, MatMulHandle& handle);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_BENCHMARK_CUDA_PEAKS_H_
