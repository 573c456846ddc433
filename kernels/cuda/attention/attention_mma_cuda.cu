// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_mma_cuda.h"

#include "kernels/cuda/attention/attention_mma_tile.h"

// The forward pass of kernels/cuda/attention/attention_cuda.h on tensor cores. A block is 4 warps
// with 32 queries each; two blocks fit on a multiprocessor of an H100 (255 registers per lane, at
// most 96 KiB). K and V arrive in tiles of 64 keys by cp.async, in two stages: the next tile is
// loaded while this one is multiplied. One barrier per tile ensures both that the next tile has
// arrived and that the buffer of this one may be overwritten. A tile is multiplied in chunks, so
// that sums (64 registers with head_dim 64, 128 with 128), P, and if possible the queries stay in
// registers. Chunks that no query of the warp reaches are skipped.

namespace tug::kernels::cuda {
namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int kM = 2;
constexpr int kWarpQueries = 16 * kM;
constexpr int kQueries = kMmaWarps * kWarpQueries;

// Choices that fit into 255 registers: whether the queries stay there, and the keys of a chunk in
// tiles of 8 columns.
template <int kDim, bool kDropout>
constexpr bool kHoldQueries = kDim <= 32 || (kDim == 64 && !kDropout);
template <int kDim, bool kDropout>
constexpr int kChunkN = kDim <= 64 ? 8
                        : kDropout ? 2
                                   : 4;

template <int kDim>
struct Tiles {
  alignas(128) Bf16 q[kQueries * kDim];
  alignas(128) Bf16 k[2][kMmaTile * kDim];
  alignas(128) Bf16 v[2][kMmaTile * kDim];
};

// Sets scores to -infinity where a query does not reach a key.
template <int kN>
__device__ __forceinline__ void MaskScores(const HeadOnDevice& head, int first_query, int first_key,
                                           FragmentC (&scores)[kM][kN]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int visible = head.Visible(first_query + 16 * m + 8 * h + LaneRow());
      const int left = visible - first_key - LaneColumn();
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        if (8 * n >= left) scores[m][n].x[2 * h] = -INFINITY;
        if (8 * n + 1 >= left) scores[m][n].x[2 * h + 1] = -INFINITY;
      }
    }
  }
}

// Statistics of a lane's rows, [m][h]: the largest score so far, and this lane's part of the sum of
// exp(s (score - largest)).
struct RowStats {
  float largest[kM][2];
  float total[kM][2];

  __device__ __forceinline__ RowStats() {
#pragma unroll
    for (int i = 0; i < 2 * kM; ++i) {
      largest[i / 2][i % 2] = -INFINITY;
      total[i / 2][i % 2] = 0;
    }
  }
};

// Step 2 of the forward pass, and step 3 without the product. Scores become dropout(P).
// s is folded into the base: exp(s x) = exp2(scale_log2 x), one fused multiply-add and one exp2.
// keeps(m, n, i): whether dropout keeps that weight.
template <typename Keeps, int kN, int kColumns>
__device__ __forceinline__ void UpdateSoftmax(float scale_log2, const Keeps& keeps,
                                              FragmentC (&scores)[kM][kN], RowStats& rows,
                                              FragmentC (&sums)[kM][kColumns]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float most = rows.largest[m][h];
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const float* const x = scores[m][n].x + 2 * h;
        most = fmaxf(most, fmaxf(x[0], x[1]));
      }
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      const float shrink = Exp2Approximate((rows.largest[m][h] - most) * scale_log2);
      const float offset = -most * scale_log2;
      rows.largest[m][h] = most;
      float total = rows.total[m][h] * shrink;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          float& x = scores[m][n].x[2 * h + odd];
          const float weight = Exp2Approximate(fmaf(x, scale_log2, offset));
          total += weight;
          x = keeps(m, n, 2 * h + odd) ? weight : 0.0f;
        }
      }
      rows.total[m][h] = total;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        sums[m][c].x[2 * h] *= shrink;
        sums[m][c].x[2 * h + 1] *= shrink;
      }
    }
  }
}

// Step 4: writes log_sum_exp and returns the factors of the sums.
__device__ __forceinline__ void FinishRows(const HeadOnDevice& head, int first_query,
                                           const RowStats& rows, float* log_sum_exp,
                                           float (&factor)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = rows.total[m][h];
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      factor[m][h] = total != 0 ? head.call.dropout.scale / total : 0.0f;
      const int query = first_query + 16 * m + 8 * h + LaneRow();
      if (LaneColumn() == 0 && query < head.call.queries) {
        log_sum_exp[head.StatsAt(query)] = rows.largest[m][h] * head.call.scale + logf(total);
      }
    }
  }
}

template <int kDim, bool kDropout>
__global__ void __launch_bounds__(kMmaThreads, 2)
    ForwardKernel(AttentionCall call, AttentionForwardArgs<Bf16> a) {
  constexpr int kN = kChunkN<kDim, kDropout>;
  auto* const tiles = SharedMemory<Tiles<kDim>>();
  const TileOfBlock<true> tile(call.queries, kQueries);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int queries = min(kQueries, call.queries - tile.first_row);
  const int reach = head.Visible(tile.first_row + queries - 1);
  const RowCopies<kDim> k_rows(a.in.k + head.At(call.keys, call.kv_stride, 0), call.kv_stride,
                               call.head_dim);
  const RowCopies<kDim> v_rows(a.in.v + head.At(call.keys, call.kv_stride, 0), call.kv_stride,
                               call.head_dim);
  const auto begin_copy = [&](int first_key, int stage) {
    k_rows.template Begin<kMmaTile>(first_key, head.keys, tiles->k[stage]);
    v_rows.template Begin<kMmaTile>(first_key, head.keys, tiles->v[stage]);
  };
  RowCopies<kDim>(a.in.q + head.At(call.queries, call.q_stride, 0), call.q_stride, call.head_dim)
      .template Begin<kQueries>(tile.first_row, call.queries, tiles->q);
  if (reach > 0) begin_copy(0, 0);
  CommitCopies();
  WaitForTiles();

  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * kWarpQueries;
  const int first_query = tile.first_row + warp_row;
  const int first_visible = head.Visible(first_query);  // minimum over the warp's queries
  const int warp_reach = head.Visible(first_query + kWarpQueries - 1);
  const LeftRows<kDim, kM, kHoldQueries<kDim, kDropout>> left(tiles->q, warp_row);
  RowStats rows;
  FragmentC sums[kM][kDim / 8] = {};
  KeptWeights<kM> kept;
  int stage = 0;
  for (int first_key = 0; first_key < reach; first_key += kMmaTile, stage ^= 1) {
    if (first_key + kMmaTile < reach) begin_copy(first_key + kMmaTile, stage ^ 1);
    CommitCopies();
    if constexpr (kDropout) kept.Draw(head, first_query, first_key);
#pragma unroll 1
    for (int row = 0; row < kMmaTile; row += 8 * kN) {
      if (first_key + row >= warp_reach) break;
      FragmentC weights[kM][kN];
      MultiplyRows(left, tiles->k[stage], row, weights);
      if (first_key + row + 8 * kN > first_visible) {
        MaskScores(head, first_query, first_key + row, weights);
      }
      const auto keeps = [&](int m, int n, int i) { return !kDropout || kept.Keeps(row, m, n, i); };
      UpdateSoftmax(call.scale * kLog2E, keeps, weights, rows, sums);
      AddProduct<kDim>(weights, tiles->v[stage], row, sums);
    }
    WaitForTiles();
  }
  float factor[kM][2];
  FinishRows(head, first_query, rows, a.log_sum_exp, factor);
  StoreRows<kDim>(sums, factor, tiles->q, warp_row,
                  {a.out + head.At(call.queries, call.width(), first_query), call.width(),
                   call.queries - first_query, call.head_dim});
}

template <int kDim>
absl::Status Forward(const AttentionCall& call, const AttentionForwardArgs<Bf16>& args,
                     const Stream& stream) {
  const auto kernel =
      call.dropout.threshold != 0 ? ForwardKernel<kDim, true> : ForwardKernel<kDim, false>;
  return Launch(
      kernel,
      {AttentionBlocks(call, call.queries, kQueries), kMmaThreads, stream, sizeof(Tiles<kDim>)},
      call, args);
}

}  // namespace

absl::Status MmaAttentionForward(const AttentionCall& call, const AttentionForwardArgs<Bf16>& args,
                                 const Stream& stream) {
  const auto run = call.head_dim <= 32   ? Forward<32>
                   : call.head_dim <= 64 ? Forward<64>
                                         : Forward<128>;
  return run(call, args, stream);
}

}  // namespace tug::kernels::cuda
