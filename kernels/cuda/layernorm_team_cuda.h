// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_LAYERNORM_TEAM_CUDA_H_
#define TUG_KERNELS_CUDA_LAYERNORM_TEAM_CUDA_H_

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/block_reduce.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"
#include "kernels/cuda/layernorm_cuda.h"

namespace tug::kernels::cuda {

// Division of a LayerNorm row among threads. A team of threads processes a whole row, held in
// registers: a warp, without barriers, up to 1024 columns; a block beyond. Thread r of the team has
// the row's 16-byte vectors r, r + team, ...; at most kColumns columns.
//   kWhole: every vector is complete and aligned. Otherwise the same elements are accessed singly.
template <typename T, bool kOfBlock, int kOfThread, bool kAtVectors>
struct LayerNormTeam {
  using Element = T;
  static constexpr bool kBlock = kOfBlock;
  static constexpr bool kWhole = kAtVectors;
  static constexpr int kColumns = kOfThread;
  static constexpr int kPerVector = kVector<T>;
  static constexpr int kVectors = kColumns / kPerVector;
  static constexpr int kMaxThreads = kBlock ? 512 : 256;
  using Values = float[kVectors][kPerVector];

  static int64_t RowsPerBlock() { return kBlock ? 1 : kMaxThreads / kWarp; }
  static __device__ __forceinline__ int64_t FirstRow() {
    return kBlock ? int64_t{blockIdx.x} : GlobalThread() / kWarp;
  }
  static __device__ __forceinline__ int64_t RowStride() {
    return kBlock ? int64_t{gridDim.x} : GridThreads() / kWarp;
  }
  static __device__ __forceinline__ int Rank() {
    return static_cast<int>(threadIdx.x) % (kBlock ? kMaxThreads : kWarp);
  }
  // First column of this thread's vector k.
  static __device__ __forceinline__ int64_t Column(int k) {
    const int team = kBlock ? static_cast<int>(blockDim.x) : kWarp;
    return int64_t{k * team + Rank()} * kPerVector;
  }
  // Sum over the team. `scratch` [kWarp] is shared memory, used by a block only.
  static __device__ __forceinline__ float Sum(float x, float* scratch) {
    if constexpr (kBlock) {
      return BlockSum(x, scratch);
    } else {
      return WarpSum(x);
    }
  }
  template <typename U>
  static __device__ __forceinline__ void Load(const U* row, int64_t width, Values& to) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      LoadVector<kWhole>(row + Column(k), width - Column(k), to[k]);
    }
  }
  template <typename U>
  static __device__ __forceinline__ void Store(const Values& from, int64_t width, U* row) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      StoreVector<kWhole>(from[k], width - Column(k), row + Column(k));
    }
  }
};

// Calls launch.operator()<Team>(threads of a block) with the team for the width.
// `whole`: all rows and vectors of the width are aligned to 16 bytes.
template <typename T, typename LaunchWithTeam>
absl::Status WithLayerNormTeam(int64_t width, bool whole, const LaunchWithTeam& launch) {
  if (width > kMaxLayerNormWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("LayerNorm width ", width, " exceeds the GPU limit of ", kMaxLayerNormWidth));
  }
  // Whole warps; each thread uses all kColumns columns if the width is a multiple of them.
  const auto launch_with = [&]<bool kBlock, int kColumns>() {
    using Whole = LayerNormTeam<T, kBlock, kColumns, true>;
    using Ragged = LayerNormTeam<T, kBlock, kColumns, false>;
    const int64_t in_use = (width + kColumns - 1) / kColumns;
    const auto threads = static_cast<unsigned>(kBlock ? (in_use + kWarp - 1) / kWarp * kWarp
                                                      : int64_t{Whole::kMaxThreads});
    return whole && width % Whole::kPerVector == 0 ? launch.template operator()<Whole>(threads)
                                                   : launch.template operator()<Ragged>(threads);
  };
  if (width <= 8 * kWarp) return launch_with.template operator()<false, 8>();
  if (width <= 16 * kWarp) return launch_with.template operator()<false, 16>();
  if (width <= 24 * kWarp) return launch_with.template operator()<false, 24>();
  if (width <= 32 * kWarp) return launch_with.template operator()<false, 32>();
  if (width <= 4096) return launch_with.template operator()<true, 8>();
  static_assert(kMaxLayerNormWidth == 16 * 512);
  return launch_with.template operator()<true, 16>();
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_LAYERNORM_TEAM_CUDA_H_
