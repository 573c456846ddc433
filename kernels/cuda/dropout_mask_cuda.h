// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DROPOUT_MASK_CUDA_H_
#define TUG_KERNELS_CUDA_DROPOUT_MASK_CUDA_H_

#include <cstdint>

#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/philox_cuda.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels::cuda {

// DropoutKeeper of kernels/dropout_keeper.h as a kernel argument: by value, without std::array.
struct DropoutMask {
  uint4 counter;       // Philox counter of element 0 of the tensor's first sample
  uint2 key;           // Philox key
  uint32_t threshold;  // 0: every element is kept
  float scale;         // 1 / (1 - p)
};

// REQUIRES: 0 <= p < 1.
inline DropoutMask MakeDropoutMask(const DropoutKey& key, float p) {
  const DropoutKeeper keeper = MakeDropoutKeeper(key, p);
  const auto counter = DropoutCounter(key, 0, 0, 0);
  const auto philox_key = DropoutPhiloxKey(key);
  return {make_uint4(counter[0], counter[1], counter[2], counter[3]),
          make_uint2(philox_key[0], philox_key[1]), keeper.threshold, keeper.scale};
}

// Random words of the elements e, e + 16, e + 32 and e + 48 of a sample (in x, y, z, w), for e % 64
// < 16. The counter is DropoutCounter of kernels/dropout.h, relative to the mask's.
__device__ __forceinline__ uint4 DropoutWords(const DropoutMask& mask, uint32_t sample_offset,
                                              int64_t element) {
  uint4 counter = mask.counter;
  counter.x += static_cast<uint32_t>(element / 64) * 16 + static_cast<uint32_t>(element % 16);
  counter.z += sample_offset;
  return Philox4x32(counter, mask.key);
}

// Bit i: whether element + i is kept, i < kCount. All lanes of a warp must call it together, lane l
// for element = (a multiple of 64) + l kCount. No random number is drawn twice: each of the 4 lanes
// that share kCount counters draws a quarter of them.
template <int kCount>
__device__ __forceinline__ unsigned KeptBits(const DropoutMask& mask, uint32_t sample_offset,
                                             int64_t element) {
  static_assert(kCount == 4 || kCount == 8);
  constexpr int kOwn = kCount / 4;
  constexpr unsigned kOwnBits = (1u << kOwn) - 1;
  constexpr int kLanesApart = 16 / kCount;                // between lanes that share counters
  const int number = static_cast<int>(element / 16 % 4);  // this lane's word of the shared counters
  unsigned drawn = 0;  // bits [j kOwn, (j + 1) kOwn): word j of this lane's counters
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const uint4 words = DropoutWords(mask, sample_offset, element + number * kOwn + i);
    drawn |= (words.x >= mask.threshold ? 1u : 0u) << i;
    drawn |= (words.y >= mask.threshold ? 1u : 0u) << (kOwn + i);
    drawn |= (words.z >= mask.threshold ? 1u : 0u) << (2 * kOwn + i);
    drawn |= (words.w >= mask.threshold ? 1u : 0u) << (3 * kOwn + i);
  }
  unsigned kept = 0;
#pragma unroll
  for (int apart = 0; apart < 4; ++apart) {
    const unsigned of_lane =
        apart == 0 ? drawn : __shfl_xor_sync(kAllLanes, drawn, apart * kLanesApart);
    kept |= (of_lane >> (number * kOwn) & kOwnBits) << ((number ^ apart) * kOwn);
  }
  return kept;
}

// Scales the kept elements of x; dropped ones become an exact zero (also infinity and NaN).
template <int kCount>
__device__ __forceinline__ void ApplyDropout(const DropoutMask& mask, unsigned kept,
                                             float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) x[i] = (kept >> i & 1) != 0 ? x[i] * mask.scale : 0.0f;
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DROPOUT_MASK_CUDA_H_
