#ifndef TUG_KERNELS_VECTOR_CUDA_H_
#define TUG_KERNELS_VECTOR_CUDA_H_

#include <cstdint>

#include "kernels/bf16_cuda.h"
#include "kernels/cuda_language.h"

namespace tug::kernels::cuda {

// Consecutive elements that a thread takes at once, as FP32. Which elements a thread has is the
// same whether they are read 16 bytes at a time or one by one: so are the results.

// Elements of T in 16 bytes, the most that a thread reads at once.
template <typename T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// Whether all of these begin at boundaries of 16 bytes. Null does.
template <typename... P>
bool AtVectors(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...);
}

// to = from[0 .. left), zeros behind; `left` may be beyond kCount, or negative. kWhole: `left` is a
// multiple of kCount or none are left, and `from` at a boundary of kCount elements, or of 16 bytes.
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

// to[0 .. left) = from, rounded as by Narrow; otherwise as LoadVector.
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
    unsigned word[kBytes / 4];
#pragma unroll
    for (int i = 0; i < kBytes / 4; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        word[i] = __float_as_uint(from[i]);
      } else {
        word[i] = static_cast<unsigned>(Narrow<Bf16>(from[2 * i])) |
                  static_cast<unsigned>(Narrow<Bf16>(from[2 * i + 1])) << 16;
      }
    }
    if constexpr (kBytes % 16 == 0) {
#pragma unroll
      for (int i = 0; i < kBytes / 16; ++i) {
        reinterpret_cast<uint4*>(to)[i] =
            make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
      }
    } else {
      static_assert(kBytes == 8);
      *reinterpret_cast<uint2*>(to) = make_uint2(word[0], word[1]);
    }
  }
}

// The same where the last vector may be cut short. kAtVectors: `from`, `to` at such a boundary.
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

#endif  // TUG_KERNELS_VECTOR_CUDA_H_
