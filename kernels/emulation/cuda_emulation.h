// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_H_

// The parts of CUDA C++ that our kernels use, for a C++ compiler, so that a .cu file runs on the
// CPU in tests (kernels/emulation/cuda_emulation_scheduler.h explains how, and which faults it
// finds). Included by kernels/cuda/device/cuda_language.h only. Our kernels do not use other parts
// of CUDA: static __shared__ (SharedMemory of kernels/cuda/device/cuda_language.h is filled with
// NaNs and its end is guarded), atomics on floating point (sums are in a fixed order), textures,
// cooperative groups.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "kernels/emulation/cuda_emulation_scheduler.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// Vector types, through which memory of any type may be read.
#define TUG_VECTOR(name, type, bytes, ...)                 \
  struct __attribute__((aligned(bytes), may_alias)) name { \
    type __VA_ARGS__;                                      \
  };
TUG_VECTOR(float2, float, 8, x, y)
TUG_VECTOR(float4, float, 16, x, y, z, w)
TUG_VECTOR(int2, int, 8, x, y)
TUG_VECTOR(int4, int, 16, x, y, z, w)
TUG_VECTOR(uint2, unsigned, 8, x, y)
TUG_VECTOR(uint4, unsigned, 16, x, y, z, w)
#undef TUG_VECTOR

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct dim3 {
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
      : x(of_x), y(of_y), z(of_z) {}
  unsigned x, y, z;
};

// Values of the CUDA thread that runs on this OS thread.
extern constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

// Barriers.
inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  tug::kernels::emulation::SyncThreads(where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace tug::kernels::emulation {

inline constexpr WarpOperation kSyncWarp = {"__syncwarp", [](void* const*, uint32_t) {}};

// Shuffle: each lane of the mask gets the value of lane `from`.
template <typename T>
struct Shuffled {
  T value;
  int from;
  T result;

  static void Combine(void* const lanes[32], uint32_t mask) {
    for (int lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      auto& to = *static_cast<Shuffled*>(lanes[lane]);
      if ((mask >> to.from & 1) == 0) {
        Fail(absl::StrFormat("shuffle: lane %d reads lane %d, which is not in the mask %#x", lane,
                             to.from, mask));
      }
      to.result = static_cast<const Shuffled*>(lanes[to.from])->value;
    }
  }
};

template <typename T>
inline constexpr WarpOperation kShuffle = {"__shfl_sync", &Shuffled<T>::Combine};

template <typename T>
T Shuffle(uint32_t mask, T value, int from, const std::source_location& where) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  Shuffled<T> mine = {value, from, T()};
  RunWarpOperation(mask, kShuffle<T>, &mine, where);
  return mine.result;
}

struct Vote {
  bool predicate;
  uint32_t ballot;

  static void Combine(void* const lanes[32], uint32_t mask) {
    uint32_t ballot = 0;
    for (int lane = 0; lane < 32; ++lane) {
      if (lanes[lane] != nullptr && static_cast<const Vote*>(lanes[lane])->predicate) {
        ballot |= uint32_t{1} << lane;
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0) static_cast<Vote*>(lanes[lane])->ballot = ballot;
    }
  }
};

inline constexpr WarpOperation kVote = {"__ballot_sync", &Vote::Combine};

// Reduction: the sum, minimum or maximum over the lanes of the mask.
template <typename T, typename Fold>
struct Reduced {
  T value;

  static void Combine(void* const lanes[32], uint32_t mask) {
    T result = static_cast<const Reduced*>(lanes[std::countr_zero(mask)])->value;
    for (int lane = std::countr_zero(mask) + 1; lane < 32; ++lane) {
      if (lanes[lane] != nullptr) {
        result = Fold()(result, static_cast<const Reduced*>(lanes[lane])->value);
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      if (lanes[lane] != nullptr) static_cast<Reduced*>(lanes[lane])->value = result;
    }
  }
};

template <typename T, typename Fold>
inline constexpr WarpOperation kReduce = {"__reduce_sync", &Reduced<T, Fold>::Combine};

template <typename T, typename Fold>
T Reduce(uint32_t mask, T value, Fold, const std::source_location& where) {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, unsigned>);
  Reduced<T, Fold> mine = {value};
  RunWarpOperation(mask, kReduce<T, Fold>, &mine, where);
  return mine.value;
}

}  // namespace tug::kernels::emulation

// Warp operations. In up, down and xor shuffles, a lane without a partner within its `width` lanes
// gets its own value.
#define TUG_WHERE const std::source_location& where = std::source_location::current()
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, TUG_WHERE) {
  tug::kernels::emulation::RunWarpOperation(mask, tug::kernels::emulation::kSyncWarp, nullptr,
                                            where);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32, TUG_WHERE) {
  const int lane = static_cast<int>(tug::kernels::emulation::Lane());
  return tug::kernels::emulation::Shuffle(mask, value, (lane & -width) | (from & (width - 1)),
                                          where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TUG_WHERE) {
  const int lane = static_cast<int>(tug::kernels::emulation::Lane());
  const int in_segment = lane & (width - 1);
  const int from = in_segment < static_cast<int>(delta) ? lane : lane - static_cast<int>(delta);
  return tug::kernels::emulation::Shuffle(mask, value, from, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TUG_WHERE) {
  const int lane = static_cast<int>(tug::kernels::emulation::Lane());
  const int in_segment = lane & (width - 1);
  const int from =
      in_segment + static_cast<int>(delta) >= width ? lane : lane + static_cast<int>(delta);
  return tug::kernels::emulation::Shuffle(mask, value, from, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, TUG_WHERE) {
  const int lane = static_cast<int>(tug::kernels::emulation::Lane());
  const int last = lane | (width - 1);
  const int from = (lane ^ lane_mask) > last ? lane : lane ^ lane_mask;
  return tug::kernels::emulation::Shuffle(mask, value, from, where);
}
inline unsigned __ballot_sync(unsigned mask, bool predicate, TUG_WHERE) {
  tug::kernels::emulation::Vote mine = {predicate, 0};
  tug::kernels::emulation::RunWarpOperation(mask, tug::kernels::emulation::kVote, &mine, where);
  return mine.ballot;
}
inline int __any_sync(unsigned mask, bool predicate, TUG_WHERE) {
  return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, bool predicate, TUG_WHERE) {
  return __ballot_sync(mask, predicate, where) == mask;
}
template <typename T>
T __reduce_add_sync(unsigned mask, T value, TUG_WHERE) {
  return tug::kernels::emulation::Reduce(
      mask, value, [](T a, T b) { return static_cast<T>(uint32_t(a) + uint32_t(b)); }, where);
}
template <typename T>
T __reduce_max_sync(unsigned mask, T value, TUG_WHERE) {
  return tug::kernels::emulation::Reduce(
      mask, value, [](T a, T b) { return std::max(a, b); }, where);
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value, TUG_WHERE) {
  return tug::kernels::emulation::Reduce(
      mask, value, [](T a, T b) { return std::min(a, b); }, where);
}
#undef TUG_WHERE

// Atomics: one CUDA thread runs at a time. They return the old value.
#define TUG_ATOMIC(T, name, next)      \
  inline T name(T* address, T value) { \
    const T old = *address;            \
    *address = static_cast<T>(next);   \
    return old;                        \
  }
#define TUG_ATOMICS(T)                                 \
  TUG_ATOMIC(T, atomicAdd, old + value)                \
  TUG_ATOMIC(T, atomicMax, std::max(old, value))       \
  TUG_ATOMIC(T, atomicMin, std::min(old, value))       \
  TUG_ATOMIC(T, atomicOr, old | value)                 \
  TUG_ATOMIC(T, atomicAnd, old& value)                 \
  TUG_ATOMIC(T, atomicExch, value)                     \
  inline T atomicCAS(T* address, T compare, T value) { \
    const T old = *address;                            \
    if (old == compare) *address = value;              \
    return old;                                        \
  }
TUG_ATOMICS(int)
TUG_ATOMICS(unsigned)
TUG_ATOMICS(unsigned long long)
#undef TUG_ATOMICS
#undef TUG_ATOMIC

// Bit operations.
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }

// Memory and arithmetic. Functions of <cmath> (sqrtf, expf, fmaf, tanhf, fmaxf, ...) are used
// directly.
template <typename T>
T __ldg(const T* p) {
  return *p;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
template <typename T>
requires std::is_arithmetic_v<T>
constexpr T min(T a, T b) { return std::min(a, b); }
template <typename T>
requires std::is_arithmetic_v<T>
constexpr T max(T a, T b) { return std::max(a, b); }

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_H_
