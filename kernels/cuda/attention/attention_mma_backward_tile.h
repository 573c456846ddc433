// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_TILE_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_TILE_H_

// Shared by the backward kernels on tensor cores. For .cu files.

#include "kernels/cuda/attention/attention_mma_tile.h"

namespace tug::kernels::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// P = exp(s score - log_sum_exp). lse_log2 is log_sum_exp in units of log(2).
__device__ __forceinline__ float Probability(float score, float scale_log2, float lse_log2) {
  return Exp2Approximate(fmaf(score, scale_log2, -lse_log2));
}

// Draws the kept bits of a tile, by all warps. Half a warp draws for one query and 64 keys, whose
// 16 counters have four keys each; a vote then gathers 16 bits of two queries at once. (Rows of
// these kernels' fragments are keys, so a lane would use only one or two of a counter's four keys.)
template <int kWarps, int kWords>
__device__ __forceinline__ void DrawKept(const HeadOnDevice& head, int first_query, int first_key,
                                         unsigned (&kept)[kMmaTile][kWords]) {
  constexpr int kBlocks = kWords / 2;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int pair = warp; pair < kMmaTile * kBlocks / 2; pair += kWarps) {
    const int item = 2 * pair + lane / 16;
    const int query = item / kBlocks, block = item % kBlocks;
    const HeadOnDevice::FourWords words =
        head.DrawWords(first_query + query, first_key / 64 + block, lane % 16);
    unsigned bits[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const unsigned ballot = __ballot_sync(kAllLanes, words.of[w] >= head.call.dropout.threshold);
      bits[w] = ballot >> (lane & 16) & 0xFFFF;
    }
    if (lane % 16 == 0) {
      kept[query][2 * block] = bits[0] | bits[1] << 16;
      kept[query][2 * block + 1] = bits[2] | bits[3] << 16;
    }
  }
}

// The tile's value for one query: threads below 64 load log_sum_exp, the next 64 row_dots. Rows
// below the matrix get infinity (so P = 0) and 0.
struct NextStat {
  float value;

  __device__ __forceinline__ NextStat(const HeadOnDevice& head, int first_query,
                                      const float* log_sum_exp, const float* row_dots) {
    const int query = first_query + static_cast<int>(threadIdx.x) % kMmaTile;
    const bool is_lse = threadIdx.x < kMmaTile;
    value = is_lse ? INFINITY : 0.0f;
    if (threadIdx.x < 2 * kMmaTile && query < head.call.queries) {
      const int64_t at = head.StatsAt(query);
      value = is_lse ? log_sum_exp[at] * kLog2E : row_dots[at];
    }
  }
  __device__ __forceinline__ void Store(float* lse_log2, float* dot) const {
    if (threadIdx.x >= 2 * kMmaTile) return;
    (threadIdx.x < kMmaTile ? lse_log2 : dot)[threadIdx.x % kMmaTile] = value;
  }
};
static_assert(kMmaThreads >= 2 * kMmaTile);

// Values of a tile's queries, from one query on.
template <int kWords>
struct QueryNumbers {
  const float* lse_log2;
  const float* dot;
  const unsigned (*kept)[kWords];
};

// For a chunk [key][query]: scores become dropout(P), dweights become dS / s; both 0 for a query
// and keys that it does not reach.
//   diagonal   position of the chunk's first query minus that of the warp's first key
//   keys       number of the warp's keys that are not padding
//   of         values from the chunk's first query on
template <bool kDropout, int kM, int kN, int kWords>
__device__ __forceinline__ void WeightGradients(const AttentionCall& call, int key_of_block,
                                                int diagonal, int keys,
                                                const QueryNumbers<kWords>& of,
                                                FragmentC (&scores)[kM][kN],
                                                FragmentC (&dweights)[kM][kN]) {
  const float scale_log2 = call.scale * kLog2E;
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int query = 8 * n + LaneColumn() + odd;
      const float lse = of.lse_log2[query], d = of.dot[query];
      const int reach = min(query + diagonal + 1, keys);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float& score = scores[m][n].x[2 * h + odd];
          float& dweight = dweights[m][n].x[2 * h + odd];
          float p = Probability(score, scale_log2, lse);
          if (16 * m + 8 * h + LaneRow() >= reach) p = 0;
          bool keep = true;
          if constexpr (kDropout) {
            const int key = key_of_block + 16 * m + 8 * h + LaneRow();
            keep = (of.kept[query][key / 32] >> (key % 32) & 1) != 0;
          }
          score = keep ? p : 0.0f;
          dweight = p * ((keep ? dweight * call.dropout.scale : 0.0f) - d);
        }
      }
    }
  }
}

// Where a block's tiles of queries come from: Q, dO, log_sum_exp and D of one head. All threads
// use it together.
template <int kDim, int kThreads = kMmaThreads>
class QuerySource {
 public:
  __device__ __forceinline__ QuerySource(const HeadOnDevice& head,
                                         const AttentionBackwardArgs<Bf16>& a,
                                         const float* log_sum_exp, const float* row_dots)
      : q_(a.in.q + head.At(head.call.queries, head.call.q_stride, 0), head.call.q_stride,
           head.call.head_dim),
        dout_(a.dout + head.At(head.call.queries, head.call.width(), 0), head.call.width(),
              head.call.head_dim),
        log_sum_exp_(log_sum_exp),
        row_dots_(row_dots) {}

  // Starts to copy the tile from `first_query` on into tiles.q[stage] and tiles.dout[stage]; zeros
  // below the matrix.
  template <typename Tiles>
  __device__ __forceinline__ void BeginCopy(const HeadOnDevice& head, int first_query, int stage,
                                            Tiles& tiles) const {
    q_.template Begin<kMmaTile>(first_query, head.call.queries, tiles.q[stage]);
    dout_.template Begin<kMmaTile>(first_query, head.call.queries, tiles.dout[stage]);
  }

  // The thread's value for the same tile.
  __device__ __forceinline__ NextStat Stat(const HeadOnDevice& head, int first_query) const {
    return NextStat(head, first_query, log_sum_exp_, row_dots_);
  }

 private:
  RowCopies<kDim, kThreads> q_, dout_;
  const float* log_sum_exp_;
  const float* row_dots_;
};

// Starts to copy kRows keys and values from `first_key` on; zeros for padding.
template <int kDim, int kRows, int kThreads = kMmaThreads>
__device__ __forceinline__ void BeginKeys(const HeadOnDevice& head,
                                          const AttentionBackwardArgs<Bf16>& a, int first_key,
                                          Bf16* k, Bf16* v) {
  const AttentionCall& call = head.call;
  RowCopies<kDim, kThreads>(a.in.k + head.At(call.keys, call.kv_stride, 0), call.kv_stride,
                            call.head_dim)
      .template Begin<kRows>(first_key, head.keys, k);
  RowCopies<kDim, kThreads>(a.in.v + head.At(call.keys, call.kv_stride, 0), call.kv_stride,
                            call.head_dim)
      .template Begin<kRows>(first_key, head.keys, v);
}

// Queries [first, end), those that may reach a tile of keys: earlier ones do not, and none reaches
// padding.
struct QueriesOfKeys {
  int first;
  int end;

  __device__ __forceinline__ QueriesOfKeys(const HeadOnDevice& head, int first_key)
      : first(head.call.causal ? first_key : 0),
        end(first_key < head.keys ? head.call.queries : 0) {}
};

// Factors of a warp's dK / s and dV from key `first_key` on; 0 for padding.
template <int kM>
__device__ __forceinline__ void KeyFactors(const HeadOnDevice& head, int first_key,
                                           float (&dk_factor)[kM][2], float (&dv_factor)[kM][2]) {
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    const bool reached = first_key + 8 * i + LaneRow() < head.keys;
    dk_factor[i / 2][i % 2] = reached ? head.call.scale : 0.0f;
    dv_factor[i / 2][i % 2] = reached ? head.call.dropout.scale : 0.0f;
  }
}

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_TILE_H_
