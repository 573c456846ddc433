// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_BLOCK_REDUCE_H_
#define TUG_KERNELS_CUDA_DEVICE_BLOCK_REDUCE_H_

#include "kernels/cuda/device/cuda_language.h"

namespace tug::kernels::cuda {

// Sums and maxima over a warp or a block, in a fixed order: the same bits in every run. All lanes
// of the warp, or all threads of the block, must call them together; all get the result. Blocks
// must be one-dimensional, of whole warps and at most 1024 threads.

// Sums in butterfly order: lanes 16 apart first.
__device__ __forceinline__ float WarpSum(float x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(kAllLanes, x, apart);
  return x;
}
// Ignores NaNs if there is a number.
__device__ __forceinline__ float WarpMax(float x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, apart));
  }
  return x;
}

// Reduction over a block: within each warp, then over warps by the same butterfly. `scratch`
// [kWarp] is shared memory, which may be reused after the return.
template <typename WarpFold>
__device__ __forceinline__ float BlockFold(float x, float neutral, float* scratch, WarpFold fold) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = fold(x);
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = fold(lane < warps ? scratch[lane] : neutral);
  __syncthreads();
  return x;
}
__device__ __forceinline__ float BlockSum(float x, float* scratch) {
  return BlockFold(x, 0.0f, scratch, [](float value) { return WarpSum(value); });
}
__device__ __forceinline__ float BlockMax(float x, float* scratch) {
  return BlockFold(x, -INFINITY, scratch, [](float value) { return WarpMax(value); });
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_BLOCK_REDUCE_H_
