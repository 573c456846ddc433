// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_PHILOX_CUDA_H_
#define TUG_KERNELS_CUDA_DEVICE_PHILOX_CUDA_H_

#include "base/philox.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::kernels::cuda {

// Philox4x32 of base/philox.h, for kernels: the same words.
__device__ __forceinline__ uint4 Philox4x32(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxMultiplier0} * counter.x;
    const uint64_t p1 = uint64_t{kPhiloxMultiplier1} * counter.z;
    counter =
        make_uint4(static_cast<uint32_t>(p1 >> 32) ^ counter.y ^ key.x, static_cast<uint32_t>(p1),
                   static_cast<uint32_t>(p0 >> 32) ^ counter.w ^ key.y, static_cast<uint32_t>(p0));
    key.x += kPhiloxKeyStep0;
    key.y += kPhiloxKeyStep1;
  }
  return counter;
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_PHILOX_CUDA_H_
