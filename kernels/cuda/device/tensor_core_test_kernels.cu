// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/tensor_core_test_kernels.h"

#include "kernels/cuda/device/tensor_core.h"

namespace tug::kernels::cuda {
namespace {

constexpr int kStride = 16 + 8;

struct Tiles {
  alignas(16) Bf16 a[16 * kStride];
  alignas(16) Bf16 b[16 * kStride];
  alignas(16) Bf16 b_transposed[8 * kStride];
};

__device__ void CopyRows(int rows, int width, const Bf16* from, Bf16* to) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += kWarp) {
    to[i / width * kStride + i % width] = from[i];
  }
}

__device__ void StoreC(const FragmentC& c, int stride, float* to) {
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  for (int i = 0; i < 4; ++i) to[(g + i / 2 * 8) * stride + 2 * t + i % 2] = c.x[i];
}

__global__ void MultiplyKernel(const Bf16* a, const Bf16* b, const Bf16* b_transposed, float* c) {
  Tiles* const tiles = SharedMemory<Tiles>();
  CopyRows(16, 16, a, tiles->a);
  CopyRows(16, 8, b, tiles->b);
  CopyRows(8, 16, b_transposed, tiles->b_transposed);
  __syncwarp();
  const int lane = static_cast<int>(threadIdx.x);
  FragmentA fragment_a;
  LoadMatrices<4, false>(tiles->a + lane % 16 * kStride + lane / 16 * 8, fragment_a.x);
  FragmentB fragment_b;
  LoadMatrices<2, true>(tiles->b + lane % 16 * kStride, fragment_b.x);
  FragmentC product = {};
  MultiplyAdd(fragment_a, fragment_b, product);
  StoreC(product, 8, c);
  // In two halves: continues a sum, and loads single matrices.
  const Bf16* const row = tiles->b_transposed + lane % 8 * kStride;
  LoadMatrices<1, false>(row, fragment_b.x);
  LoadMatrices<1, false>(row + 8, fragment_b.x + 1);
  product = {1, 1, 1, 1};
  MultiplyAdd(fragment_a, fragment_b, product);
  for (float& x : product.x) x -= 1;
  LoadMatrices<2, false>(tiles->b_transposed + lane % 8 * kStride + lane / 8 % 2 * 8, fragment_b.x);
  MultiplyAdd(fragment_a, fragment_b, product);
  for (float& x : product.x) x /= 2;
  StoreC(product, 8, c + 16 * 8);
}

__global__ void SquareKernel(const Bf16* a, float* squared) {
  Tiles* const tiles = SharedMemory<Tiles>();
  CopyRows(16, 16, a, tiles->a);
  __syncwarp();
  const int lane = static_cast<int>(threadIdx.x);
  const Bf16* const row = tiles->a + lane % 16 * kStride + lane / 16 * 8;
  FragmentA left;
  LoadMatrices<4, false>(row, left.x);
  unsigned right[4];  // rows 0 and 8 of columns 0, then of columns 8
  LoadMatrices<4, true>(row, right);
  for (int half = 0; half < 2; ++half) {
    FragmentC product = {};
    MultiplyAdd(left, {{right[2 * half], right[2 * half + 1]}}, product);
    StoreC(product, 16, squared + 8 * half);
  }
}

// 64 threads, each with one vector of four floats in each half of the tile.
__global__ void CopyKernel(int n, const float* in, float* out) {
  float* const tile = SharedMemory<float>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int at = 4 * thread; at < 512; at += 256) {
    const int there = n - at < 0 ? 0 : n - at > 4 ? 4 : n - at;
    CopyAsync16(tile + at, in + (there > 0 ? at : 0), there * static_cast<int>(sizeof(float)));
    CommitCopies();
  }
  WaitForCopies<1>();
  for (int i = 4 * thread; i < 4 * thread + 4; ++i) out[i] = tile[i];  // written by this thread
  WaitForCopies<0>();
  __syncthreads();
  for (int i = 256 + thread; i < 512; i += 64) out[i] = tile[i];  // written by other threads
}

__global__ void PackKernel(const float* x, Bf16* out) {
  const int i = static_cast<int>(threadIdx.x);
  const unsigned pair = PackBf16(x[2 * i], x[2 * i + 1]);
  out[2 * i] = static_cast<Bf16>(pair & 0xFFFF);
  out[2 * i + 1] = static_cast<Bf16>(pair >> 16);
}

}  // namespace

absl::Status MultiplyByFragments(const Bf16* a, const Bf16* b, const Bf16* b_transposed, float* c,
                                 const Stream& stream) {
  return Launch(MultiplyKernel, {1, kWarp, stream, sizeof(Tiles)}, a, b, b_transposed, c);
}

absl::Status SquareByFragments(const Bf16* a, float* squared, const Stream& stream) {
  return Launch(SquareKernel, {1, kWarp, stream, sizeof(Tiles)}, a, squared);
}

absl::Status CopyThroughShared(int n, const float* in, float* out, const Stream& stream) {
  return Launch(CopyKernel, {1, 64, stream, 512 * sizeof(float)}, n, in, out);
}

absl::Status PackPairs(const float* x, Bf16* out, const Stream& stream) {
  return Launch(PackKernel, {1, kWarp, stream}, x, out);
}

}  // namespace tug::kernels::cuda
