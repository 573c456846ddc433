// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sum_cuda.h"

#include "base/status_macros.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"
#include "kernels/sum.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kCount = kVector<float>;

__device__ __forceinline__ bool IsFinite(float x) {
  return (__float_as_uint(x) & 0x7FFFFFFFu) < 0x7F800000u;
}

// With acc null, only checks src.
template <bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    AddAndCheckKernel(const float* __restrict__ src, float* __restrict__ acc, int64_t n,
                      uint32_t* all_finite) {
  bool finite = true;
#pragma unroll 4
  for (int64_t i = GlobalThread() * kCount; i < n; i += GridThreads() * kCount) {
    float x[kCount];
    LoadVectorOrRest<kAtVectors>(src + i, n - i, x);
#pragma unroll
    for (int j = 0; j < kCount; ++j) finite = finite && IsFinite(x[j]);
    if (acc == nullptr) continue;
    float sum[kCount];
    LoadVectorOrRest<kAtVectors>(acc + i, n - i, sum);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sum[j] += x[j];
    StoreVectorOrRest<kAtVectors>(sum, n - i, acc + i);
  }
  if (!finite) *all_finite = 0;  // all writers write the same value
}

absl::Status LaunchAddAndCheck(const float* src, float* acc, int64_t n, uint32_t* all_finite,
                               const Stream& stream) {
  if (n == 0) return absl::OkStatus();
  const bool at_vectors = AtVectors(src, acc);
  const auto kernel = at_vectors ? &AddAndCheckKernel<true> : &AddAndCheckKernel<false>;
  return Launch(kernel, {GridStrideBlocks((n + kCount - 1) / kCount, kThreads), kThreads, stream},
                src, acc, n, all_finite);
}

// leaves [chunks]: a warp sums a chunk, each lane its vectors, then a butterfly over lanes.
template <bool kAtVectors>
__global__ void __launch_bounds__(kThreads)
    ChunksKernel(const float* __restrict__ x, int64_t n, int64_t chunks,
                 double* __restrict__ leaves) {
  constexpr int kVectors = static_cast<int>(kSumChunk) / (kWarp * kCount);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t chunk = GlobalThread() / kWarp; chunk < chunks; chunk += GridThreads() / kWarp) {
    float value[kVectors][kCount];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int64_t i = chunk * kSumChunk + (k * kWarp + lane) * kCount;
      LoadVectorOrRest<kAtVectors>(x + i, n - i, value[k]);
    }
    double sum = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const double wide = static_cast<double>(value[k][i]);
        sum += wide * wide;
      }
    }
    for (int apart = kWarp / 2; apart > 0; apart /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, apart);
    }
    if (lane == 0) leaves[chunk] = sum;
  }
}

constexpr int kFoldThreads = 512;
constexpr int kLeaves = 2 * kFoldThreads;  // of a block: a complete subtree

struct FoldShared {
  double sum[kFoldThreads];
};

// folded [blocks]: neighbours are paired level by level, an odd last one moves up.
__global__ void __launch_bounds__(kFoldThreads)
    FoldKernel(const double* __restrict__ leaves, int64_t count, double* __restrict__ folded) {
  double* const sum = SharedMemory<FoldShared>()->sum;
  const int64_t begin = int64_t{blockIdx.x} * kLeaves;
  int level = static_cast<int>(min(count - begin, int64_t{kLeaves}));
  const int left = 2 * static_cast<int>(threadIdx.x);
  double mine = 0;
  if (left < level) mine = leaves[begin + left];
  if (left + 1 < level) mine += leaves[begin + left + 1];
  for (level = (level + 1) / 2; level > 1; level = (level + 1) / 2) {
    sum[threadIdx.x] = mine;
    __syncthreads();
    if (left < level) mine = sum[left];
    if (left + 1 < level) mine += sum[left + 1];
    __syncthreads();
  }
  if (threadIdx.x == 0) folded[blockIdx.x] = mine;
}

}  // namespace

absl::Status AddAndCheck(const float* src, float* acc, int64_t n, uint32_t* all_finite,
                         const Stream& stream) {
  return LaunchAddAndCheck(src, acc, n, all_finite, stream);
}

absl::Status AllFinite(const float* x, int64_t n, uint32_t* all_finite, const Stream& stream) {
  return LaunchAddAndCheck(x, nullptr, n, all_finite, stream);
}

absl::Status SumOfSquares(const float* x, int64_t n, double* sum, const Stream& stream) {
  if (n == 0) return FillZeroAsync(sum, sizeof(*sum), stream);
  int64_t count = (n + kSumChunk - 1) / kSumChunk;
  // Scratch for the results of two levels: each level reads one half and writes the other.
  const int64_t second = (count + kLeaves - 1) / kLeaves;
  ASSIGN_OR_RETURN(
      const ScratchBuffer scratch,
      ScratchBuffer::Create(static_cast<size_t>(count + second) * sizeof(double), stream));
  double* from = scratch.As<double>();
  double* to = from + count;
  const auto kernel = AtVectors(x) ? &ChunksKernel<true> : &ChunksKernel<false>;
  RETURN_IF_ERROR(Launch(kernel, {GridStrideBlocks(count * kWarp, kThreads), kThreads, stream}, x,
                         n, count, from));
  while (true) {
    const auto blocks = static_cast<unsigned>((count + kLeaves - 1) / kLeaves);
    RETURN_IF_ERROR(Launch(FoldKernel, {blocks, kFoldThreads, stream, sizeof(FoldShared)}, from,
                           count, blocks == 1 ? sum : to));
    if (blocks == 1) return absl::OkStatus();
    count = blocks;
    double* const next = from;
    from = to;
    to = next;
  }
}

}  // namespace tug::kernels::cuda
