// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_BF16_CUDA_H_
#define TUG_KERNELS_CUDA_DEVICE_BF16_CUDA_H_

#include <type_traits>

#include "kernels/bf16.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::kernels::cuda {

// Conversions between elements (float or Bf16) and FP32, for kernels. Narrow rounds with the bits
// of Bf16FromFloat (kernels/bf16.h), NaNs included.
__device__ __forceinline__ float Widen(float x) { return x; }
__device__ __forceinline__ float Widen(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x) << 16);
}

template <typename T>
__device__ __forceinline__ T Narrow(float x) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, Bf16>);
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    const unsigned bits = __float_as_uint(x);
    const unsigned rounded = bits + 0x7FFF + (bits >> 16 & 1);
    const unsigned quiet = bits | 0x00400000;
    return static_cast<Bf16>((x != x ? quiet : rounded) >> 16);
  }
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_BF16_CUDA_H_
