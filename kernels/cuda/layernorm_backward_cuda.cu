// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"
#include "kernels/cuda/layernorm_cuda.h"
#include "kernels/cuda/layernorm_team_cuda.h"

// Two kernels.
//   1. A team processes a fixed share of the rows: dx of each, with its columns of dgamma and dbeta
//      in registers. The warps of a block add theirs up by a binary tree, and the block writes the
//      sums to scratch memory, `parts`.
//   2. Adds up the parts of a column: serially over a fixed share of them, then by a binary tree.

namespace tug::kernels::cuda {
namespace {

constexpr int kTeams = 8;  // per block, if a team is a warp

// Shared memory of kernel 1: half of the teams' sums if a team is a warp, else scratch of the
// block's sums.
template <typename Team>
size_t SharedBytes() {
  if (Team::kBlock) return kWarp * sizeof(float);
  return size_t{kTeams / 2} * 2 * kWarp * Team::kColumns * sizeof(float);
}

// Adds the dgamma and dbeta of all warps to those of warp 0.
template <typename Team>
__device__ __forceinline__ void AddWarps(typename Team::Values& dgamma,
                                         typename Team::Values& dbeta, float* shared) {
  constexpr int kOfWarp = 2 * kWarp * Team::kColumns;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int left = kTeams / 2; left > 0; left /= 2) {
    // Lanes are the last index: [column of a lane][lane].
    float* const at = shared + warp % left * kOfWarp + Team::Rank();
    const bool gives = warp >= left && warp < 2 * left;
    const bool takes = warp < left;
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) {
        const int column = k * Team::kPerVector + i;
        if (gives) at[column * kWarp] = dgamma[k][i];
        if (gives) at[(Team::kColumns + column) * kWarp] = dbeta[k][i];
      }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) {
        const int column = k * Team::kPerVector + i;
        if (takes) dgamma[k][i] += at[column * kWarp];
        if (takes) dbeta[k][i] += at[(Team::kColumns + column) * kWarp];
      }
    }
    __syncthreads();
  }
}

// A row's statistics, as the forward pass stored them.
struct RowStats {
  float mean;
  float rstd;
};

// Sums over a row's columns, of g and of g normal; or the means.
struct RowSums {
  float g = 0;
  float g_normal = 0;
};

// One vector of a row: x becomes normal = (x - mean) rstd, dy becomes g = dy gamma, and both are
// added to the sums over the row and to those over the rows.
template <int kCount>
__device__ __forceinline__ void AddVector(const RowStats& stats, const float (&gamma)[kCount],
                                          float (&x)[kCount], float (&dy)[kCount], RowSums& sums,
                                          float (&dgamma)[kCount], float (&dbeta)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float dy_i = dy[i];
    x[i] = (x[i] - stats.mean) * stats.rstd;
    dy[i] = dy_i * gamma[i];  // 0 beyond the end
    sums.g += dy[i];
    sums.g_normal = fmaf(dy[i], x[i], sums.g_normal);
    dgamma[i] = fmaf(dy_i, x[i], dgamma[i]);
    dbeta[i] += dy_i;
  }
}

// One vector of a row: g becomes dx. before: the old dx to accumulate, or 0.
template <int kCount>
__device__ __forceinline__ void ToInputGradient(const RowSums& means, float rstd,
                                                const float (&normal)[kCount],
                                                const float (&before)[kCount], float (&g)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float inner = fmaf(-normal[i], means.g_normal, g[i] - means.g);
    g[i] = fmaf(inner, rstd, before[i]);
  }
}

// With normal = (x - mean) rstd and g = dy gamma:
//   dx = rstd (g - mean(g) - normal mean(g normal)), plus the old dx to accumulate
// Operands of `a` that overlap no result are separate parameters, since nvcc ignores __restrict__
// on members.   parts [blocks][2][width].
template <typename Team>
__global__ void __launch_bounds__(Team::kMaxThreads)
    BackwardKernel(LayerNormBackwardArgs<typename Team::Element> a,
                   const typename Team::Element* __restrict__ x, const float* __restrict__ gamma,
                   const float* __restrict__ mean_in, const float* __restrict__ rstd_in,
                   float* __restrict__ parts) {
  const int64_t width = a.width;
  float* const shared = SharedMemory<float>();
  const float inverse_width = 1.0f / static_cast<float>(width);
  typename Team::Values dgamma = {};
  typename Team::Values dbeta = {};
  for (int64_t row = Team::FirstRow(); row < a.rows; row += Team::RowStride()) {
    const RowStats stats = {.mean = mean_in[row], .rstd = rstd_in[row]};
    typename Team::Values normal, gradient;
    Team::Load(x + row * width, width, normal);
    Team::Load(a.dy + row * width, width, gradient);
    RowSums sums;
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
      const int64_t column = Team::Column(k);
      float scale[Team::kPerVector];
      LoadVector<Team::kWhole>(gamma + column, width - column, scale);
      AddVector(stats, scale, normal[k], gradient[k], sums, dgamma[k], dbeta[k]);
    }
    const RowSums means = {.g = Team::Sum(sums.g, shared) * inverse_width,
                           .g_normal = Team::Sum(sums.g_normal, shared) * inverse_width};
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
      const int64_t column = Team::Column(k);
      float before[Team::kPerVector] = {};
      if (a.accumulate) {
        LoadVector<Team::kWhole>(a.dx + row * width + column, width - column, before);
      }
      ToInputGradient(means, stats.rstd, normal[k], before, gradient[k]);
    }
    Team::Store(gradient, width, a.dx + row * width);
  }
  if constexpr (!Team::kBlock) {
    AddWarps<Team>(dgamma, dbeta, shared);
    if (threadIdx.x >= kWarp) return;
  }
  float* const part = parts + int64_t{blockIdx.x} * 2 * width;
#pragma unroll
  for (int k = 0; k < Team::kVectors; ++k) {
    const int64_t column = Team::Column(k);
    StoreVector<Team::kWhole>(dgamma[k], width - column, part + column);
    StoreVector<Team::kWhole>(dbeta[k], width - column, part + width + column);
  }
}

constexpr int kFoldThreads = 256;
constexpr int kFoldColumns = 8;  // of a block: 32 bytes, the smallest memory transaction
constexpr int kFoldShares = kFoldThreads / kFoldColumns;

struct FoldShared {
  float sum[kFoldThreads];  // [shares][columns]
};

// dgamma += the sums over parts of columns [0, width), dbeta += those of [width, 2 width).
__global__ void __launch_bounds__(kFoldThreads)
    FoldKernel(int64_t count, int64_t width, const float* __restrict__ parts, float* dgamma,
               float* dbeta) {
  float* const sums = SharedMemory<FoldShared>()->sum;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t column = int64_t{blockIdx.x} * kFoldColumns + thread % kFoldColumns;
  float sum = 0;
  if (column < 2 * width) {
    for (int64_t part = thread / kFoldColumns; part < count; part += kFoldShares) {
      sum += parts[part * 2 * width + column];
    }
  }
  sums[thread] = sum;
  __syncthreads();
  for (int left = kFoldThreads / 2; left >= kFoldColumns; left /= 2) {
    if (thread < left) sums[thread] += sums[thread + left];
    __syncthreads();
  }
  if (thread >= kFoldColumns || column >= 2 * width) return;
  if (column < width) {
    dgamma[column] += sums[thread];
  } else if (dbeta != nullptr) {
    dbeta[column - width] += sums[thread];
  }
}

// Number of blocks of kernel 1, the same on every GPU since the order of sums follows from it. At
// most 264 of 256 threads if a team is a warp, else 132 x 1024 threads; a large GPU runs them at
// once.
template <typename Team>
int64_t PartsOf(int64_t rows, unsigned threads) {
  const int64_t blocks = (rows + Team::RowsPerBlock() - 1) / Team::RowsPerBlock();
  const int64_t most = 132 * (Team::kBlock ? 1024 / threads : 2);
  return blocks < most ? blocks : most;
}

}  // namespace

template <typename T>
absl::Status LayerNormBackward(const LayerNormBackwardArgs<T>& a, const Stream& stream) {
  if (a.rows == 0 || a.width == 0) return absl::OkStatus();
  return WithLayerNormTeam<T>(
      a.width, AtVectors(a.dy, a.x, a.gamma, a.dx),
      [&]<typename Team>(unsigned threads) -> absl::Status {
        const int64_t count = PartsOf<Team>(a.rows, threads);
        const int64_t columns = 2 * a.width;
        ASSIGN_OR_RETURN(
            const ScratchBuffer parts,
            ScratchBuffer::Create(static_cast<size_t>(count * columns) * sizeof(float), stream));
        RETURN_IF_ERROR(Launch(BackwardKernel<Team>,
                               {static_cast<unsigned>(count), threads, stream, SharedBytes<Team>()},
                               a, a.x, a.gamma, a.mean, a.rstd, parts.As<float>()));
        const auto blocks = static_cast<unsigned>((columns + kFoldColumns - 1) / kFoldColumns);
        return Launch(FoldKernel, {blocks, kFoldThreads, stream, sizeof(FoldShared)}, count,
                      a.width, parts.As<float>(), a.dgamma, a.dbeta);
      });
}

template absl::Status LayerNormBackward(const LayerNormBackwardArgs<float>&, const Stream&);
template absl::Status LayerNormBackward(const LayerNormBackwardArgs<Bf16>&, const Stream&);

}  // namespace tug::kernels::cuda
