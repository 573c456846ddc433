// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_fp32_cuda.h"

#include "base/status_macros.h"
#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

// Attention in FP32 arithmetic, for any head_dim up to 128: the steps of
// kernels/cuda/attention/attention_cuda.h, with tiles of 64 rows on both sides. A block is 16 x 16
// threads. In a product of two tiles, 64 x 64, thread (y, x) has rows y + 16 i and columns x + 16
// j, i and j below 4:
//   - a row of a tile has 4 floats of padding, so that 8 threads that each read 16 bytes of 8
//     adjacent rows use all 32 banks once;
//   - keys x + 16 j are those that one Philox counter decides on (kernels/dropout.h);
//   - a row is spread over 16 threads of one warp: they reduce it by shuffles, and only they read
//     the row of weights that they write, so __syncwarp is sufficient for it.

namespace tug::kernels::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;
constexpr int kEach = kTile / kSide;

template <int kDim>
struct RowTile {
  alignas(16) float at[kTile][kDim + 4];
};
struct WeightTile {
  alignas(16) float at[kTile][kTile + 4];
};

// A thread's part of a product of two tiles, and of a product with kDim columns.
using Part = float[kEach][kEach];
template <int kDim>
using Sums = float[kEach][kDim / kSide];

__device__ __forceinline__ int Row(int i) {
  return static_cast<int>(threadIdx.x) / kSide + kSide * i;
}
__device__ __forceinline__ int Column(int j) {
  return static_cast<int>(threadIdx.x) % kSide + kSide * j;
}

// Loads at most `rows` rows from `from` on, as FP32; zeros below and to the right.
template <typename T, int kDim>
__device__ void LoadRows(const T* __restrict__ from, int64_t stride, int rows, int head_dim,
                         RowTile<kDim>& tile) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDim; i += kThreads) {
    const int row = i / kDim, column = i % kDim;
    const bool there = row < rows && column < head_dim;
    tile.at[row][column] = there ? Widen(from[row * stride + column]) : 0.0f;
  }
}

template <int kDim>
__device__ __forceinline__ float4 FourOf(const RowTile<kDim>& tile, int row, int column) {
  return *reinterpret_cast<const float4*>(&tile.at[row][column]);
}

// product = a b^T
template <int kDim>
__device__ void MultiplyRows(const RowTile<kDim>& a, const RowTile<kDim>& b, Part& product) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) product[i][j] = 0;
  }
  for (int d = 0; d < kDim; d += 4) {
    float4 right[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j) right[j] = FourOf(b, Column(j), d);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const float4 left = FourOf(a, Row(i), d);
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        product[i][j] += left.x * right[j].x;
        product[i][j] += left.y * right[j].y;
        product[i][j] += left.z * right[j].z;
        product[i][j] += left.w * right[j].w;
      }
    }
  }
}

// sums += weights b
template <int kDim>
__device__ void AddProduct(const WeightTile& weights, const RowTile<kDim>& b, Sums<kDim>& sums) {
  for (int k = 0; k < kTile; ++k) {
    float left[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) left[i] = weights.at[Row(i)][k];
#pragma unroll
    for (int c = 0; c < kDim / kSide; ++c) {
      const float right = b.at[k][Column(c)];
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[i][c] += left[i] * right;
    }
  }
}

__device__ void WriteWeights(const Part& part, WeightTile& weights) {
  __syncwarp();  // the row's threads may still read the old weights
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) weights.at[Row(i)][Column(j)] = part[i][j];
  }
  __syncwarp();
}

// Stores the first `rows` rows of sums, row i times factor[i].
template <int kDim, typename T>
__device__ void StoreRows(const Sums<kDim>& sums, const float (&factor)[kEach], int rows,
                          int head_dim, T* out, int64_t stride) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int c = 0; c < kDim / kSide; ++c) {
      if (Row(i) < rows && Column(c) < head_dim) {
        out[Row(i) * stride + Column(c)] = Narrow<T>(sums[i][c] * factor[i]);
      }
    }
  }
}

// Dropout for the four keys 64 block + lane + 16 j of a query: x times the scale if kept, else an
// exact zero.
struct FourKeys {
  float factor[kEach];

  __device__ FourKeys(const HeadOnDevice& head, int query, int block, int lane) {
    const DropoutMask& dropout = head.call.dropout;
    if (dropout.threshold == 0) {
      for (float& each : factor) each = 1;
      return;
    }
    const HeadOnDevice::FourWords words = head.DrawWords(query, block, lane);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      factor[j] = words.of[j] >= dropout.threshold ? dropout.scale : 0.0f;
    }
  }
  __device__ float Of(int j, float x) const { return factor[j] != 0 ? x * factor[j] : 0.0f; }
};

__device__ float RowMax(float x) {
  for (int apart = kSide / 2; apart > 0; apart /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, apart));
  }
  return x;
}
__device__ float RowSum(float x) {
  for (int apart = kSide / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(kAllLanes, x, apart);
  return x;
}

template <int kDim>
struct ForwardTiles {
  RowTile<kDim> q, k, v;
  WeightTile weights;
};

// Multiplies a row's scores by s; -infinity from key `visible` on. Returns the largest.
__device__ __forceinline__ float MaskScores(const AttentionCall& call, int first_key, int visible,
                                            float (&scores)[kEach]) {
  float most = -INFINITY;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    float& score = scores[j];
    score = first_key + Column(j) < visible ? score * call.scale : -INFINITY;
    most = fmaxf(most, score);
  }
  return most;
}

// Scores of a row become dropout(P). Returns the sum of P.
__device__ __forceinline__ float ToWeights(const FourKeys& dropout, float most,
                                           float (&scores)[kEach]) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const float weight = expf(scores[j] - most);
    sum += weight;
    scores[j] = dropout.Of(j, weight);
  }
  return sum;
}

// Step 4: writes log_sum_exp and returns the factors of the sums.
template <typename T>
__device__ __forceinline__ void FinishRows(const HeadOnDevice& head, int first_query, int queries,
                                           const float (&largest)[kEach],
                                           const float (&total)[kEach],
                                           const AttentionForwardArgs<T>& a,
                                           float (&factor)[kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    factor[i] = total[i] != 0 ? 1.0f / total[i] : 0.0f;
    if (Column(0) == 0 && Row(i) < queries) {
      a.log_sum_exp[head.StatsAt(first_query + Row(i))] = largest[i] + logf(total[i]);
    }
  }
}

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(AttentionCall call, AttentionForwardArgs<T> a) {
  auto* const tiles = SharedMemory<ForwardTiles<kDim>>();
  const TileOfBlock<true> tile(call.queries, kTile);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int first_query = tile.first_row, queries = min(kTile, call.queries - first_query);
  LoadRows(a.in.q + head.At(call.queries, call.q_stride, first_query), call.q_stride, queries,
           call.head_dim, tiles->q);
  Sums<kDim> sums = {};
  float largest[kEach], total[kEach];
  for (int i = 0; i < kEach; ++i) {
    largest[i] = -INFINITY;
    total[i] = 0;
  }
  const int reach = head.Visible(first_query + queries - 1);
  for (int first_key = 0; first_key < reach; first_key += kTile) {
    __syncthreads();  // other threads may still read the previous tile
    const int64_t kv_at = head.At(call.keys, call.kv_stride, first_key);
    LoadRows(a.in.k + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->k);
    LoadRows(a.in.v + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->v);
    __syncthreads();
    Part weights;
    MultiplyRows(tiles->q, tiles->k, weights);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int query = first_query + Row(i), visible = head.Visible(query);
      const float most =
          fmaxf(largest[i], RowMax(MaskScores(call, first_key, visible, weights[i])));
      const float shrink = expf(largest[i] - most);
      largest[i] = most;
      const FourKeys dropout(head, query, first_key / kTile, Column(0));
      total[i] = total[i] * shrink + RowSum(ToWeights(dropout, most, weights[i]));
#pragma unroll
      for (int c = 0; c < kDim / kSide; ++c) sums[i][c] *= shrink;
    }
    WriteWeights(weights, tiles->weights);
    AddProduct<kDim>(tiles->weights, tiles->v, sums);
  }
  float factor[kEach];
  FinishRows(head, first_query, queries, largest, total, a, factor);
  StoreRows<kDim>(sums, factor, queries, call.head_dim,
                  a.out + head.At(call.queries, call.width(), first_query), call.width());
}

template <int kDim>
struct BackwardTiles {
  RowTile<kDim> q, k, v, dout;
  WeightTile weights;
};

// P and dS / s of one query and key; 0 if the key is not reached. `score` is q k.
struct ScoreGradient {
  float p;
  float dscore;

  __device__ ScoreGradient(const AttentionCall& call, bool reached, float score, float dp,
                           float lse, float dot)
      : p(reached ? expf(score * call.scale - lse) : 0.0f), dscore(p * (dp - dot)) {}
};

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    QueryGradientKernel(AttentionCall call, AttentionBackwardArgs<T> a,
                        const float* __restrict__ row_dots) {
  auto* const tiles = SharedMemory<BackwardTiles<kDim>>();
  const TileOfBlock<true> tile(call.queries, kTile);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int first_query = tile.first_row, queries = min(kTile, call.queries - first_query);
  LoadRows(a.in.q + head.At(call.queries, call.q_stride, first_query), call.q_stride, queries,
           call.head_dim, tiles->q);
  LoadRows(a.dout + head.At(call.queries, call.width(), first_query), call.width(), queries,
           call.head_dim, tiles->dout);
  float lse[kEach], dot[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const bool there = Row(i) < queries;
    lse[i] = there ? a.log_sum_exp[head.StatsAt(first_query + Row(i))] : 0.0f;
    dot[i] = there ? row_dots[head.StatsAt(first_query + Row(i))] : 0.0f;
  }
  Sums<kDim> sums = {};
  const int reach = head.Visible(first_query + queries - 1);
  for (int first_key = 0; first_key < reach; first_key += kTile) {
    __syncthreads();  // other threads may still read the previous tile
    const int64_t kv_at = head.At(call.keys, call.kv_stride, first_key);
    LoadRows(a.in.k + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->k);
    LoadRows(a.in.v + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->v);
    __syncthreads();
    Part scores, dweights;
    MultiplyRows(tiles->q, tiles->k, scores);
    MultiplyRows(tiles->dout, tiles->v, dweights);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int query = first_query + Row(i);
      const int visible = Row(i) < queries ? head.Visible(query) : 0;
      const FourKeys dropout(head, query, first_key / kTile, Column(0));
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const bool reached = first_key + Column(j) < visible;
        const float dp = dropout.Of(j, dweights[i][j]);
        scores[i][j] = ScoreGradient(call, reached, scores[i][j], dp, lse[i], dot[i]).dscore;
      }
    }
    WriteWeights(scores, tiles->weights);
    AddProduct<kDim>(tiles->weights, tiles->k, sums);
  }
  const float factor[kEach] = {call.scale, call.scale, call.scale, call.scale};
  StoreRows<kDim>(sums, factor, queries, call.head_dim,
                  a.gradient.q + head.At(call.queries, call.dq_stride, first_query),
                  call.dq_stride);
}

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    KeyGradientKernel(AttentionCall call, AttentionBackwardArgs<T> a,
                      const float* __restrict__ row_dots) {
  auto* const tiles = SharedMemory<BackwardTiles<kDim>>();
  const TileOfBlock<false> tile(call.keys, kTile);
  const HeadOnDevice head(call, a.shape.key_counts, tile.head);
  const int first_key = tile.first_row;
  const int64_t kv_at = head.At(call.keys, call.kv_stride, first_key);
  LoadRows(a.in.k + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->k);
  LoadRows(a.in.v + kv_at, call.kv_stride, head.keys - first_key, call.head_dim, tiles->v);
  Sums<kDim> dk_sums = {}, dv_sums = {};
  // Earlier queries do not reach this tile; no query reaches padding.
  const int first_reaching = call.causal ? first_key : 0;
  const int end = first_key < head.keys ? call.queries : 0;
  for (int first_query = first_reaching; first_query < end; first_query += kTile) {
    const int queries = min(kTile, call.queries - first_query);
    __syncthreads();  // other threads may still read the previous tile
    LoadRows(a.in.q + head.At(call.queries, call.q_stride, first_query), call.q_stride, queries,
             call.head_dim, tiles->q);
    LoadRows(a.dout + head.At(call.queries, call.width(), first_query), call.width(), queries,
             call.head_dim, tiles->dout);
    __syncthreads();
    Part weights, dscores;  // [key][query]
    MultiplyRows(tiles->k, tiles->q, weights);
    MultiplyRows(tiles->v, tiles->dout, dscores);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int query = first_query + Column(j);
      const bool there = Column(j) < queries;
      const int visible = there ? head.Visible(query) : 0;
      const float lse = there ? a.log_sum_exp[head.StatsAt(query)] : 0.0f;
      const float dot = there ? row_dots[head.StatsAt(query)] : 0.0f;
      const FourKeys dropout(head, query, first_key / kTile, Row(0));
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const bool reached = first_key + Row(i) < visible;
        const ScoreGradient gradient(call, reached, weights[i][j], dropout.Of(i, dscores[i][j]),
                                     lse, dot);
        weights[i][j] = dropout.Of(i, gradient.p);
        dscores[i][j] = gradient.dscore;
      }
    }
    WriteWeights(weights, tiles->weights);
    AddProduct<kDim>(tiles->weights, tiles->dout, dv_sums);
    WriteWeights(dscores, tiles->weights);
    AddProduct<kDim>(tiles->weights, tiles->q, dk_sums);
  }
  const float one[kEach] = {1, 1, 1, 1};
  const float factor[kEach] = {call.scale, call.scale, call.scale, call.scale};
  const int keys = min(kTile, call.keys - first_key);
  const int64_t at = head.At(call.keys, call.dkv_stride, first_key);
  StoreRows<kDim>(dk_sums, factor, keys, call.head_dim, a.gradient.k + at, call.dkv_stride);
  StoreRows<kDim>(dv_sums, one, keys, call.head_dim, a.gradient.v + at, call.dkv_stride);
}

template <int kDim, typename T>
absl::Status Forward(const AttentionCall& call, const AttentionForwardArgs<T>& args,
                     const Stream& stream) {
  return Launch(
      ForwardKernel<T, kDim>,
      {AttentionBlocks(call, call.queries, kTile), kThreads, stream, sizeof(ForwardTiles<kDim>)},
      call, args);
}

template <int kDim, typename T>
absl::Status Backward(const AttentionCall& call, const AttentionBackwardArgs<T>& args,
                      const float* row_dots, const Stream& stream) {
  constexpr size_t kShared = sizeof(BackwardTiles<kDim>);
  if (call.queries != 0) {
    RETURN_IF_ERROR(Launch(QueryGradientKernel<T, kDim>,
                           {AttentionBlocks(call, call.queries, kTile), kThreads, stream, kShared},
                           call, args, row_dots));
  }
  if (call.keys == 0) return absl::OkStatus();
  return Launch(KeyGradientKernel<T, kDim>,
                {AttentionBlocks(call, call.keys, kTile), kThreads, stream, kShared}, call, args,
                row_dots);
}

}  // namespace

template <typename T>
absl::Status Fp32AttentionForward(const AttentionCall& call, const AttentionForwardArgs<T>& args,
                                  const Stream& stream) {
  const auto run = call.head_dim <= 32   ? Forward<32, T>
                   : call.head_dim <= 64 ? Forward<64, T>
                                         : Forward<128, T>;
  return run(call, args, stream);
}

template <typename T>
absl::Status Fp32AttentionBackward(const AttentionCall& call, const AttentionBackwardArgs<T>& args,
                                   const float* row_dots, const Stream& stream) {
  const auto run = call.head_dim <= 32   ? Backward<32, T>
                   : call.head_dim <= 64 ? Backward<64, T>
                                         : Backward<128, T>;
  return run(call, args, row_dots, stream);
}

#define TUG_ATTENTION(T)                                                                           \
  template absl::Status Fp32AttentionForward(const AttentionCall&, const AttentionForwardArgs<T>&, \
                                             const Stream&);                                       \
  template absl::Status Fp32AttentionBackward(                                                     \
      const AttentionCall&, const AttentionBackwardArgs<T>&, const float*, const Stream&);
TUG_ATTENTION(float)
TUG_ATTENTION(Bf16)
#undef TUG_ATTENTION

}  // namespace tug::kernels::cuda
