#include "kernels/bias_cuda.h"

#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"

namespace tug::kernels::cuda {
namespace {

// A block sums as many columns as lie in 32 bytes, the least that memory gives: narrow, so that
// there are blocks for all multiprocessors without a second pass over partial sums.
//   1. Thread (column, r) adds up rows r, r + kRows, ...
//   2. The kRows sums of a column fold by a binary tree in shared memory.
constexpr int kThreads = 512;
template <typename T>
constexpr int kColumns = 32 / static_cast<int>(sizeof(T));

struct PartialSums {
  float of[kThreads];  // [rows][columns]
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    BiasGradientKernel(int64_t rows, int64_t width, const T* __restrict__ dy, int64_t dy_stride,
                       float* dbias) {
  PartialSums* const partial = SharedMemory<PartialSums>();
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kRows = kThreads / kColumns<T>;
  const int64_t column = int64_t{blockIdx.x} * kColumns<T> + thread % kColumns<T>;
  float sum = 0;
  if (column < width) {
    for (int64_t row = thread / kColumns<T>; row < rows; row += kRows) {
      sum += Widen(dy[row * dy_stride + column]);
    }
  }
  partial->of[thread] = sum;
  __syncthreads();
  for (int left = kThreads / 2; left >= kColumns<T>; left /= 2) {
    if (thread < left) partial->of[thread] += partial->of[thread + left];
    __syncthreads();
  }
  if (thread < kColumns<T> && column < width) dbias[column] += partial->of[thread];
}

}  // namespace

template <typename T>
absl::Status BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride, float* dbias,
                          const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  const auto blocks = static_cast<unsigned>((width + kColumns<T> - 1) / kColumns<T>);
  return Launch(BiasGradientKernel<T>, {blocks, kThreads, stream, sizeof(PartialSums)}, rows, width,
                dy, dy_stride, dbias);
}

template absl::Status BiasGradient(int64_t, int64_t, const float*, int64_t, float*, const Stream&);
template absl::Status BiasGradient(int64_t, int64_t, const Bf16*, int64_t, float*, const Stream&);

}  // namespace tug::kernels::cuda
