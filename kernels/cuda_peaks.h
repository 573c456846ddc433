#ifndef TUG_KERNELS_CUDA_PEAKS_H_
#define TUG_KERNELS_CUDA_PEAKS_H_

#include "absl/status/status.h"
#include "kernels/cuda_benchmark.h"
#include "kernels/matmul_cuda.h"

namespace tug::kernels::cuda {

// What a GPU does at best, first in a benchmark, for others to be compared with.

// A copy of 512 MiB.
absl::Status TimeCopy(CudaBenchmark& benchmark);

// The product of two matrices of 8,192 x 8,192 elements T: float or Bf16.
template <typename T>
absl::Status TimeSquareProduct(CudaBenchmark& benchmark, MatMulHandle& handle);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_PEAKS_H_
