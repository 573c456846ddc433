#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"
#include "kernels/linear_elements_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxRowBlocks = 1024;

__global__ void RoundToBf16Kernel(int64_t n, const float* __restrict__ from,
                                  Bf16* __restrict__ to) {
  for (int64_t i = GlobalThread(); i < n; i += GridThreads()) to[i] = Narrow<Bf16>(from[i]);
}

__device__ __forceinline__ unsigned Pair(float first, float second) {
  return static_cast<unsigned>(Narrow<Bf16>(first)) | static_cast<unsigned>(Narrow<Bf16>(second))
                                                          << 16;
}

// 8 elements a thread: 32 bytes read, 16 written. REQUIRES: both at a boundary of 16 bytes.
__global__ void RoundEightsToBf16Kernel(int64_t eights, const float4* __restrict__ from,
                                        uint4* __restrict__ to) {
  for (int64_t i = GlobalThread(); i < eights; i += GridThreads()) {
    const float4 a = from[2 * i];
    const float4 b = from[2 * i + 1];
    to[i] = make_uint4(Pair(a.x, a.y), Pair(a.z, a.w), Pair(b.x, b.y), Pair(b.z, b.w));
  }
}

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

bool IsAtBoundary(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace

absl::Status RoundToBf16(int64_t n, const float* from, Bf16* to, const Stream& stream) {
  const int64_t eights = IsAtBoundary(from) && IsAtBoundary(to) ? n / 8 : 0;
  if (eights > 0) {
    const absl::Status status =
        Launch(RoundEightsToBf16Kernel, {GridStrideBlocks(eights, kThreads), kThreads, stream},
               eights, reinterpret_cast<const float4*>(from), reinterpret_cast<uint4*>(to));
    if (!status.ok()) return status;
  }
  const int64_t rest = n - 8 * eights;
  if (rest == 0) return absl::OkStatus();
  return Launch(RoundToBf16Kernel, {GridStrideBlocks(rest, kThreads), kThreads, stream}, rest,
                from + 8 * eights, to + 8 * eights);
}

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
