// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias_cuda.h"

#include "base/status_macros.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

namespace tug::kernels::cuda {
namespace {

// Each block has a vector of columns per lane, and a part of the rows. Few columns need many parts
// to keep all multiprocessors busy; their sums are then added by the same kernel, as rows of a
// matrix.
//   1. Warp w adds up rows w, w + kWarps, ... of the part.
//   2. The warps' sums of a column are added in warp order.
constexpr int kWarps = 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int64_t kPartRows = 64;  // minimum: with fewer, partial sums cost more than they gain
constexpr int64_t kBlocks = 264;   // target: two per multiprocessor of a large GPU
template <typename T>
constexpr int kColumns = kWarp* kVector<T>;

template <typename T>
struct WarpSums {
  float of[kWarps][kColumns<T>];
};

// sums [parts][width] = the sums of parts of `part_rows` rows; with one part, sums [width] += its
// sum.
template <typename T, bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    SumRowsKernel(int64_t rows, int64_t part_rows, int64_t width, const T* __restrict__ dy,
                  int64_t dy_stride, bool accumulate, float* sums) {
  constexpr int kCount = kVector<T>;
  auto* const shared = SharedMemory<WarpSums<T>>();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first_column = int64_t{blockIdx.x} * kColumns<T>;
  const int64_t column = first_column + lane * kCount;
  const int64_t first_row = int64_t{blockIdx.y} * part_rows;
  const int64_t end = first_row + part_rows < rows ? first_row + part_rows : rows;
  float sum[kCount] = {};
#pragma unroll 4
  for (int64_t row = first_row + warp; row < end; row += kWarps) {
    float x[kCount];
    LoadVectorOrRest<kAtVectors>(dy + row * dy_stride + column, width - column, x);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += x[i];
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) shared->of[warp][i * kWarp + lane] = sum[i];  // no bank conflict
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kColumns<T>; i += kThreads) {
    if (first_column + i >= width) break;
    const int from = i % kCount * kWarp + i / kCount;
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += shared->of[w][from];
    float& to = sums[blockIdx.y * width + first_column + i];
    to = accumulate ? to + total : total;
  }
}

template <typename T>
absl::Status SumRows(int64_t rows, int64_t part_rows, int64_t width, const T* dy, int64_t dy_stride,
                     float* sums, const Stream& stream) {
  const bool at_vectors = AtVectors(dy) && dy_stride % kVector<T> == 0;
  const auto kernel = at_vectors ? &SumRowsKernel<T, true> : &SumRowsKernel<T, false>;
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  const dim3 grid(static_cast<unsigned>((width + kColumns<T> - 1) / kColumns<T>),
                  static_cast<unsigned>(parts));
  return Launch(kernel, {grid, kThreads, stream, sizeof(WarpSums<T>)}, rows, part_rows, width, dy,
                dy_stride, /*accumulate=*/parts == 1, sums);
}

}  // namespace

template <typename T>
absl::Status BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride, float* dbias,
                          const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  const int64_t across = (width + kColumns<T> - 1) / kColumns<T>;
  const int64_t parts_wanted = (kBlocks + across - 1) / across;
  const int64_t even = (rows + parts_wanted - 1) / parts_wanted;
  const int64_t part_rows = even < kPartRows ? kPartRows : even;
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  if (parts == 1) return SumRows(rows, rows, width, dy, dy_stride, dbias, stream);
  ASSIGN_OR_RETURN(
      const ScratchBuffer partial,
      ScratchBuffer::Create(static_cast<size_t>(parts * width) * sizeof(float), stream));
  auto* const sums = partial.As<float>();
  RETURN_IF_ERROR(SumRows(rows, part_rows, width, dy, dy_stride, sums, stream));
  return SumRows<float>(parts, parts, width, sums, width, dbias, stream);
}

template absl::Status BiasGradient(int64_t, int64_t, const float*, int64_t, float*, const Stream&);
template absl::Status BiasGradient(int64_t, int64_t, const Bf16*, int64_t, float*, const Stream&);

}  // namespace tug::kernels::cuda
