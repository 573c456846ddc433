// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_VECTOR_CUDA_H_
#define TUG_KERNELS_CUDA_DEVICE_VECTOR_CUDA_H_

#include <cstdint>

#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::kernels::cuda {

// Loads and stores of consecutive elements by one thread, as FP32. A thread has the same elements
// whether they are accessed 16 bytes at once or one by one, and so the results are the same.

// Elements of T in 16 bytes, the most that a thread accesses at once.
template <typename T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// Stores 16 bytes at once; 16-byte aligned. Without it nvcc splits some uint4 stores into four.
__device__ __forceinline__ void StoreWords(const unsigned (&word)[4], void* to) {
#if TUG_CUDA_EMULATED
  *static_cast<uint4*>(to) = make_uint4(word[0], word[1], word[2], word[3]);
#else
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                 "r"(word[3])
               : "memory");
#endif
}
// Stores 8 bytes at once; 8-byte aligned.
__device__ __forceinline__ void StoreWords(const unsigned (&word)[2], void* to) {
#if TUG_CUDA_EMULATED
  *static_cast<uint2*>(to) = make_uint2(word[0], word[1]);
#else
  asm volatile("st.global.v2.u32 [%0], {%1, %2};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(word[0]), "r"(word[1])
               : "memory");
#endif
}

// Launch shape of a kernel on rows of vectors: blocks along rows in x (GlobalThread() is the vector
// within the row) and across rows in y, so that no division is needed to find an element's column.
inline LaunchShape RowsOfVectors(int64_t rows, int64_t vectors, const Stream& stream) {
  constexpr int64_t kMaxThreadsPerBlock = 256, kMaxRowBlocks = 1024;
  const int64_t warps = (vectors + kWarp - 1) / kWarp;
  const auto threads = static_cast<unsigned>(
      warps * kWarp < kMaxThreadsPerBlock ? warps * kWarp : kMaxThreadsPerBlock);
  const dim3 grid(GridStrideBlocks(vectors, static_cast<int>(threads)),
                  static_cast<unsigned>(rows < kMaxRowBlocks ? rows : kMaxRowBlocks));
  return {grid, threads, stream};
}

// to = from[0 .. left), then zeros; `left` may exceed kCount or be negative. kWhole: `left` is a
// multiple of kCount or not positive, and `from` is aligned to kCount elements or to 16 bytes.
template <bool kWhole, int kCount, typename T>
__device__ __forceinline__ void LoadVector(const T* from, int64_t left, float (&to)[kCount]) {
  if constexpr (!kWhole) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = i < left ? Widen(from[i]) : 0.0f;
    return;
  } else {
    static_assert(kCount % 4 == 0);
    constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
    unsigned word[kBytes / 4] = {};
    if (left > 0) {
      if constexpr (kBytes % 16 == 0) {
#pragma unroll
        for (int i = 0; i < kBytes / 16; ++i) {
          const uint4 four = reinterpret_cast<const uint4*>(from)[i];
          word[4 * i] = four.x;
          word[4 * i + 1] = four.y;
          word[4 * i + 2] = four.z;
          word[4 * i + 3] = four.w;
        }
      } else {
        static_assert(kBytes == 8);
        const uint2 two = *reinterpret_cast<const uint2*>(from);
        word[0] = two.x;
        word[1] = two.y;
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        to[i] = __uint_as_float(word[i]);
      } else {
        to[i] = __uint_as_float(i % 2 == 0 ? word[i / 2] << 16 : word[i / 2] & 0xFFFF0000u);
      }
    }
  }
}

// to[0 .. left) = from, rounded by Narrow; otherwise like LoadVector.
template <bool kWhole, int kCount, typename T>
__device__ __forceinline__ void StoreVector(const float (&from)[kCount], int64_t left, T* to) {
  if constexpr (!kWhole) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i < left) to[i] = Narrow<T>(from[i]);
    }
    return;
  } else {
    static_assert(kCount % 4 == 0);
    if (left <= 0) return;
    constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
    constexpr int kAtOnce = kBytes < 16 ? kBytes / 4 : 4;  // in words
#pragma unroll
    for (int begin = 0; begin < kBytes / 4; begin += kAtOnce) {
      unsigned word[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if constexpr (std::is_same_v<T, float>) {
          word[i] = __float_as_uint(from[begin + i]);
        } else {
          const int at = 2 * (begin + i);
          word[i] = static_cast<unsigned>(Narrow<Bf16>(from[at])) |
                    static_cast<unsigned>(Narrow<Bf16>(from[at + 1])) << 16;
        }
      }
      StoreWords(word, reinterpret_cast<unsigned*>(to) + begin);
    }
  }
}

// LoadVector and StoreVector where the last vector may be partial. kAtVectors: `from` or `to` is
// aligned as for kWhole.
template <bool kAtVectors, int kCount, typename T>
__device__ __forceinline__ void LoadVectorOrRest(const T* from, int64_t left, float (&to)[kCount]) {
  if (kAtVectors && left >= kCount) return LoadVector<true>(from, left, to);
  LoadVector<false>(from, left, to);
}
template <bool kAtVectors, int kCount, typename T>
__device__ __forceinline__ void StoreVectorOrRest(const float (&from)[kCount], int64_t left,
                                                  T* to) {
  if (kAtVectors && left >= kCount) return StoreVector<true>(from, left, to);
  StoreVector<false>(from, left, to);
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_VECTOR_CUDA_H_
