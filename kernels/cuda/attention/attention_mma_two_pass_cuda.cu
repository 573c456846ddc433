// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"
#include "kernels/cuda/attention/attention_mma_backward_tile.h"
#include "kernels/cuda/attention/attention_mma_cuda.h"

// The backward pass of kernels/cuda/attention/attention_cuda.h on tensor cores in two passes: one
// kernel iterates over keys for the gradient of queries, the other over queries for those of keys
// and values. Both have 4 warps per block, 16 kM rows per warp, and tiles of 64 rows of the other
// side loaded by cp.async in two stages as in the forward pass. A tile is processed in chunks, so
// that everything fits into 255 registers of a lane: with head_dim 64 or 128, 64 for dQ or 128 for
// dK and dV, and 64 for a chunk's P and dS. Chunks that the warp's queries do not reach are
// skipped.

namespace tug::kernels::cuda {
namespace {

// With dropout, drawing random numbers costs more than smaller chunks do.
template <int kDim, bool kDropout = false>
struct Backward {
  static constexpr int kM = kDim <= 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kM;
  static constexpr int kRows = kMmaWarps * kWarpRows;  // per block
  static constexpr int kN = (kDropout ? 4 : 8) / kM;
  static constexpr int kChunk = 8 * kN;
};

template <int kDim>
struct QueryTiles {
  alignas(128) Bf16 q[Backward<kDim>::kRows * kDim];
  alignas(128) Bf16 dout[Backward<kDim>::kRows * kDim];
  alignas(128) Bf16 k[2][kMmaTile * kDim];
  alignas(128) Bf16 v[2][kMmaTile * kDim];
};

// Statistics of a lane's queries, [m][h]. Rows below the matrix get values for which P = 0.
template <int kM>
struct QueryStats {
  float lse_log2[kM][2];
  float dot[kM][2];

  __device__ __forceinline__ QueryStats(const HeadOnDevice& head, int first_query,
                                        const float* log_sum_exp, const float* row_dots) {
#pragma unroll
    for (int i = 0; i < 2 * kM; ++i) {
      const int query = first_query + 8 * i + LaneRow();
      const bool there = query < head.call.queries;
      lse_log2[i / 2][i % 2] = there ? log_sum_exp[head.StatsAt(query)] * kLog2E : INFINITY;
      dot[i / 2][i % 2] = there ? row_dots[head.StatsAt(query)] : 0.0f;
    }
  }
};

// scores become dS / s. dweights: dO V^T if dropout keeps the weight, else 0.
template <int kM, int kN>
__device__ __forceinline__ void ScoreGradients(const HeadOnDevice& head, int first_query,
                                               int first_key, bool masked,
                                               const QueryStats<kM>& stats,
                                               const FragmentC (&dweights)[kM][kN],
                                               FragmentC (&scores)[kM][kN]) {
  const float scale_log2 = head.call.scale * kLog2E;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = i / 2;
      const int visible = head.Visible(first_query + 16 * m + 8 * h + LaneRow());
      const int left = visible - first_key - LaneColumn() - i % 2;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        float& score = scores[m][n].x[i];
        float p = Probability(score, scale_log2, stats.lse_log2[m][h]);
        if (masked && 8 * n >= left) p = 0;
        const float dp = dweights[m][n].x[i] * head.call.dropout.scale;
        score = p * (dp - stats.dot[m][h]);
      }
    }
  }
}

template <int kDim, bool kDropout>
__global__ void __launch_bounds__(kMmaThreads, 2)
    QueryGradientKernel(AttentionCall call, AttentionBackwardArgs<Bf16> a,
                        const float* __restrict__ log_sum_exp, const float* __restrict__ row_dots) {
  using B = Backward<kDim, kDropout>;
  auto* const tiles = SharedMemory<QueryTiles<kDim>>();
  const TileOfBlock<true> tile(call.queries, B::kRows);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int queries = min(B::kRows, call.queries - tile.first_row);
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
      .template Begin<B::kRows>(tile.first_row, call.queries, tiles->q);
  RowCopies<kDim>(a.dout + head.At(call.queries, call.width(), 0), call.width(), call.head_dim)
      .template Begin<B::kRows>(tile.first_row, call.queries, tiles->dout);
  if (reach > 0) begin_copy(0, 0);
  CommitCopies();
  WaitForTiles();

  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * B::kWarpRows;
  const int first_query = tile.first_row + warp_row;
  const int first_visible = head.Visible(first_query);  // minimum over the warp's queries
  const int warp_reach = head.Visible(first_query + B::kWarpRows - 1);
  const LeftRows<kDim, B::kM, false> left_q(tiles->q, warp_row);
  const LeftRows<kDim, B::kM, false> left_dout(tiles->dout, warp_row);
  const QueryStats<B::kM> stats(head, first_query, log_sum_exp, row_dots);
  FragmentC sums[B::kM][kDim / 8] = {};
  KeptWeights<B::kM> kept;
  int stage = 0;
  for (int first_key = 0; first_key < reach; first_key += kMmaTile, stage ^= 1) {
    if (first_key + kMmaTile < reach) begin_copy(first_key + kMmaTile, stage ^ 1);
    CommitCopies();
    if constexpr (kDropout) kept.Draw(head, first_query, first_key);
#pragma unroll 1
    for (int row = 0; row < kMmaTile; row += B::kChunk) {
      if (first_key + row >= warp_reach) break;
      FragmentC scores[B::kM][B::kN], dweights[B::kM][B::kN];
      MultiplyRows(left_q, tiles->k[stage], row, scores);
      MultiplyRows(left_dout, tiles->v[stage], row, dweights);
      if constexpr (kDropout) kept.Drop(row, dweights);
      const bool masked = first_key + row + B::kChunk > first_visible;
      ScoreGradients(head, first_query, first_key + row, masked, stats, dweights, scores);
      AddProduct<kDim>(scores, tiles->k[stage], row, sums);
    }
    WaitForTiles();
  }
  float factor[B::kM][2];
#pragma unroll
  for (int i = 0; i < 2 * B::kM; ++i) factor[i / 2][i % 2] = call.scale;
  StoreRows<kDim>(sums, factor, tiles->q, warp_row,
                  {a.gradient.q + head.At(call.queries, call.dq_stride, first_query),
                   call.dq_stride, call.queries - first_query, call.head_dim});
}

template <int kDim>
struct KeyTiles {
  alignas(128) Bf16 k[Backward<kDim>::kRows * kDim];
  alignas(128) Bf16 v[Backward<kDim>::kRows * kDim];
  alignas(128) Bf16 q[2][kMmaTile * kDim];
  alignas(128) Bf16 dout[2][kMmaTile * kDim];
  // Values of the tile's queries. Rows below the matrix: infinity (so P = 0) and 0.
  float lse_log2[2][kMmaTile];
  float dot[2][kMmaTile];
  // Bit b of kept[stage][query][i]: whether dropout keeps key 32 i + b of the block.
  unsigned kept[2][kMmaTile][2 * Backward<kDim>::kM];

  __device__ __forceinline__ QueryNumbers<2 * Backward<kDim>::kM> NumbersFrom(int stage,
                                                                              int query) const {
    return {lse_log2[stage] + query, dot[stage] + query, kept[stage] + query};
  }
};

template <int kDim, bool kDropout>
__global__ void __launch_bounds__(kMmaThreads, 2)
    KeyGradientKernel(AttentionCall call, AttentionBackwardArgs<Bf16> a,
                      const float* __restrict__ log_sum_exp, const float* __restrict__ row_dots) {
  using B = Backward<kDim, kDropout>;
  auto* const tiles = SharedMemory<KeyTiles<kDim>>();
  const TileOfBlock<false> tile(call.keys, B::kRows);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int block_key = tile.first_row;
  const QueriesOfKeys queries(head, block_key);
  const QuerySource<kDim> source(head, a, log_sum_exp, row_dots);
  const auto begin_copy = [&](int first_query, int stage) {
    source.BeginCopy(head, first_query, stage, *tiles);
    if constexpr (kDropout) DrawKept<kMmaWarps>(head, first_query, block_key, tiles->kept[stage]);
  };
  BeginKeys<kDim, B::kRows>(head, a, block_key, tiles->k, tiles->v);
  if (queries.first < queries.end) begin_copy(queries.first, 0);
  CommitCopies();
  source.Stat(head, queries.first).Store(tiles->lse_log2[0], tiles->dot[0]);
  WaitForTiles();

  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * B::kWarpRows;
  const int first_key = block_key + warp_row;
  const LeftRows<kDim, B::kM, false> left_k(tiles->k, warp_row), left_v(tiles->v, warp_row);
  FragmentC dk_sums[B::kM][kDim / 8] = {}, dv_sums[B::kM][kDim / 8] = {};
  int stage = 0;
  for (int first_query = queries.first; first_query < queries.end;
       first_query += kMmaTile, stage ^= 1) {
    if (first_query + kMmaTile < queries.end) begin_copy(first_query + kMmaTile, stage ^ 1);
    CommitCopies();
    const NextStat next = source.Stat(head, first_query + kMmaTile);
#pragma unroll 1
    for (int row = 0; row < kMmaTile; row += B::kChunk) {
      // Position of the chunk's first query minus that of the warp's first key. Without causality
      // every query reaches every key.
      const int diagonal = call.causal ? first_query + row - first_key : B::kRows;
      if (diagonal + B::kChunk <= 0) continue;
      FragmentC weights[B::kM][B::kN], dscores[B::kM][B::kN];
      MultiplyRows(left_k, tiles->q[stage], row, weights);
      MultiplyRows(left_v, tiles->dout[stage], row, dscores);
      WeightGradients<kDropout>(call, warp_row, diagonal, head.keys - first_key,
                                tiles->NumbersFrom(stage, row), weights, dscores);
      AddProduct<kDim>(weights, tiles->dout[stage], row, dv_sums);
      AddProduct<kDim>(dscores, tiles->q[stage], row, dk_sums);
    }
    next.Store(tiles->lse_log2[stage ^ 1], tiles->dot[stage ^ 1]);
    WaitForTiles();
  }
  float dk_factor[B::kM][2], dv_factor[B::kM][2];
  KeyFactors(head, first_key, dk_factor, dv_factor);
  const int64_t at = head.At(call.keys, call.dkv_stride, first_key);
  const int keys = call.keys - first_key;
  StoreRows<kDim>(dk_sums, dk_factor, tiles->k, warp_row,
                  {a.gradient.k + at, call.dkv_stride, keys, call.head_dim});
  StoreRows<kDim>(dv_sums, dv_factor, tiles->v, warp_row,
                  {a.gradient.v + at, call.dkv_stride, keys, call.head_dim});
}

template <int kDim, bool kDropout>
absl::Status Run(const AttentionCall& call, const AttentionBackwardArgs<Bf16>& args,
                 const float* row_dots, const Stream& stream) {
  constexpr int kRows = Backward<kDim>::kRows;
  if (call.queries != 0) {
    RETURN_IF_ERROR(Launch(
        QueryGradientKernel<kDim, kDropout>,
        {AttentionBlocks(call, call.queries, kRows), kMmaThreads, stream, sizeof(QueryTiles<kDim>)},
        call, args, args.log_sum_exp, row_dots));
  }
  if (call.keys == 0) return absl::OkStatus();
  return Launch(
      KeyGradientKernel<kDim, kDropout>,
      {AttentionBlocks(call, call.keys, kRows), kMmaThreads, stream, sizeof(KeyTiles<kDim>)}, call,
      args, args.log_sum_exp, row_dots);
}

}  // namespace

absl::Status TwoPassAttentionBackward(const AttentionCall& call,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream) {
  const bool drop = call.dropout.threshold != 0;
  const auto run = call.head_dim <= 32   ? (drop ? Run<32, true> : Run<32, false>)
                   : call.head_dim <= 64 ? (drop ? Run<64, true> : Run<64, false>)
                                         : (drop ? Run<128, true> : Run<128, false>);
  return run(call, args, row_dots, stream);
}

}  // namespace tug::kernels::cuda
