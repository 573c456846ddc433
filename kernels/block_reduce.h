#ifndef TUG_KERNELS_BLOCK_REDUCE_H_
#define TUG_KERNELS_BLOCK_REDUCE_H_

#include "kernels/cuda_language.h"

namespace tug::kernels::cuda {

// Sums and maxima over a warp or a block, in a fixed order: the same bits at every run. All lanes
// of the warp, or all threads of the block, call them together; all get the result. Blocks are of
// one dimension, whole warps, 1024 threads at most.

// The order is that of a butterfly: lanes 16 apart first.
__device__ __forceinline__ float WarpSum(float x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(kAllLanes, x, apart);
  return x;
}
// Of NaNs and numbers, a number.
__device__ __forceinline__ float WarpMax(float x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, apart));
  }
  return x;
}

// Of a block: each warp's result, then over warps by the same butterfly. `scratch` [kWarp] is
// shared memory, which may be used for the next call, or for anything else, after a return.
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

#endif  // TUG_KERNELS_BLOCK_REDUCE_H_
