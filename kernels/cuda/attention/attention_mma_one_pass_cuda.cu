// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status_macros.h"
#include "kernels/cuda/attention/attention_backward_plan.h"
#include "kernels/cuda/attention/attention_mma_backward_tile.h"
#include "kernels/cuda/attention/attention_mma_cuda.h"
#include "kernels/cuda/device/vector_cuda.h"

// The backward pass of kernels/cuda/attention/attention_cuda.h on tensor cores in one pass. A block
// processes tiles of 128 keys one after another, each with tiles of 64 queries loaded by cp.async
// in two stages. A warp has 16 kM keys: their dK and dV stay in its registers, and it computes S'
// and dP' in chunks, so that everything fits into 255 registers of a lane (64 for a chunk's P and
// dS, 128 for the sums of head_dim 64 or 128). It writes dS' to shared memory. After a barrier each
// warp multiplies the dS' of all keys by K, for 16 or 32 queries and 32 columns of dQ, and adds the
// product to the block's sums of the tile of queries. Paper: FlashAttention-2 (Dao 2023), algorithm
// 2, except that dQ is summed without atomics.

namespace tug::kernels::cuda {
namespace {

static_assert(kMmaTile == kBackwardQueryTile);

template <int kDim, bool kDropout = false>
struct OnePass {
  // With 128 columns only one block fits on a multiprocessor, so it has twice as many warps. With
  // dropout and 64 columns a block needs 83,456 B of shared memory, plus 1 KiB on an A100: only one
  // of the two blocks fits into its 164 KiB.
  static constexpr int kWarps = kDim == 128 ? 8 : 4;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kBlocksAtOnce = 8 / kWarps;
  static constexpr int kM = kBackwardKeyTile / kWarps / 16;
  static constexpr int kWarpRows = 16 * kM;  // keys
  // With dropout, drawing random numbers costs more than smaller chunks do; with 128 columns there
  // are too few registers for larger ones.
  static constexpr int kN = (kDropout || kDim == 128 ? 4 : 8) / kM;
  static constexpr int kChunk = 8 * kN;  // queries
};

// A warp's part of a tile's dQ / s: 16 kM queries and 32 columns. In memory the sums of a tile are
// in the order of fragments, [warp][m][n][lane][4]: a lane accesses 16 bytes next to its
// neighbours', and always the same ones, so it sees its own writes without a barrier.
template <int kDim>
struct QueryPart {
  static constexpr int kM = kDim == 32 ? 1 : 2;
  static constexpr int kRows = 16 * kM;
  static constexpr int kColumns = 32, kN = kColumns / 8;
  static constexpr int kParts = kDim / kColumns;  // side by side
  static_assert(OnePass<kDim>::kWarps == kMmaTile / kRows * kParts);
  // Parts that a warp does not compute, because no query of the chunk reaches its keys, are not
  // read.
  static_assert(OnePass<kDim>::kWarpRows % kRows == 0 || OnePass<kDim, true>::kChunk >= kRows);

  FragmentC of[kM][kN] = {};

  static __device__ __forceinline__ int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ __forceinline__ int FirstRow() { return Warp() / kParts * kRows; }
  static __device__ __forceinline__ int FirstColumn() { return Warp() % kParts * kColumns; }
  // Position of the lane's part of fragment [m][n] in a tile of sums.
  static __device__ __forceinline__ int At(int m, int n) {
    return (((Warp() * kM + m) * kN + n) * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 4;
  }

  __device__ __forceinline__ void Load(const float* sums) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) LoadVector<true>(sums + At(m, n), 4, of[m][n].x);
    }
  }
  __device__ __forceinline__ void Store(float* sums) const {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) StoreVector<true>(of[m][n].x, 4, sums + At(m, n));
    }
  }
  __device__ __forceinline__ void Add(const QueryPart& more) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4 * kN; ++i) of[m][i / 4].x[i % 4] += more.of[m][i / 4].x[i % 4];
    }
  }
  // += dS K over the first `keys` keys, rounded up to a multiple of 16.
  //   dscores  [key][query], key_rows [key][column]: tiles
  __device__ __forceinline__ void AddProduct(const Bf16* dscores, const Bf16* key_rows, int keys) {
    const int lane = FreshLane();
#pragma unroll 2
    for (int key = 0; key < keys; key += 16) {
      FragmentA a[kM];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        LoadMatrices<4, true>(
            dscores + key * kMmaTile +
                ChunkAt<kMmaTile>(lane / 16 * 8 + lane % 8, FirstRow() / 8 + 2 * m + lane / 8 % 2),
            a[m].x);
      }
#pragma unroll
      for (int n = 0; n < kN; n += 2) {
        unsigned b[4];
        LoadMatrices<4, true>(
            key_rows + key * kDim + ChunkAt<kDim>(lane % 16, FirstColumn() / 8 + n + lane / 16), b);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          MultiplyAdd(a[m], {{b[0], b[1]}}, of[m][n]);
          MultiplyAdd(a[m], {{b[2], b[3]}}, of[m][n + 1]);
        }
      }
    }
  }
};

// Position of the sums of a run of heads: by head, then by block of its keys, then by tile of
// queries; with causal attention only tiles from the first one that reaches the block's keys.
struct SumsLayout {
  int64_t first_head;
  int heads;
  int query_tiles;
  int tiles_of_block;
  int64_t sum_tiles_of_head;
  bool causal;

  __host__ __device__ int FirstQueryTile(int block) const {
    return causal ? block * tiles_of_block * (kBackwardKeyTile / kMmaTile) : 0;
  }
  // Index of the tile of sums for query tile 0, which exists only if it is reached. `head`: within
  // the run.
  __device__ int64_t Begin(int64_t head, int block) const {
    const int64_t unreached = FirstQueryTile(1);
    const int64_t before =
        int64_t{block} * query_tiles - unreached * (int64_t{block} * (block - 1) / 2);
    return head * sum_tiles_of_head + before - FirstQueryTile(block);
  }
};

template <int kDim, bool kDropout>
struct OnePassTiles {
  alignas(128) Bf16 k[kBackwardKeyTile * kDim];
  alignas(128) Bf16 v[kBackwardKeyTile * kDim];
  alignas(128) Bf16 q[2][kMmaTile * kDim];
  alignas(128) Bf16 dout[2][kMmaTile * kDim];
  alignas(128) Bf16 dscores[kBackwardKeyTile * kMmaTile];  // [key][query]
  // Values of the tile's queries.
  float lse_log2[kMmaTile];
  float dot[kMmaTile];
  // Bit b of kept[query][i]: whether dropout keeps key 32 i + b of the tile.
  unsigned kept[kDropout ? kMmaTile : 1][kBackwardKeyTile / 32];

  // Draws `kept` for a tile of queries, by all threads.
  __device__ __forceinline__ void Draw(const HeadOnDevice& head, int first_query, int first_key) {
    if constexpr (kDropout) {
      DrawKept<OnePass<kDim, kDropout>::kWarps>(head, first_query, first_key, kept);
    }
  }
  // The values from `query` on.
  __device__ __forceinline__ QueryNumbers<kBackwardKeyTile / 32> NumbersFrom(int query) const {
    return {lse_log2 + query, dot + query, kept + query};
  }
};

// Rounds dS' of a chunk to bf16 and stores it in the tile [key][query]; its position is a multiple
// of 8.
template <int kM, int kN>
__device__ __forceinline__ void StoreScoreGradients(const FragmentC (&dscores)[kM][kN],
                                                    int first_key, int first_query, Bf16* tile) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const float* const x = dscores[m][n].x + 2 * h;
        *reinterpret_cast<unsigned*>(tile + (first_key + 16 * m + 8 * h) * kMmaTile +
                                     ChunkAt<kMmaTile>(LaneRow(), first_query / 8 + n) +
                                     LaneColumn()) = PackBf16(x[0], x[1]);
      }
    }
  }
}

// Writes a warp's dK and dV, from key `first_key` of the head on, with its own rows of the tiles of
// keys and values as buffers; zeros for padding.
template <int kDim, int kM, typename Tiles>
__device__ __forceinline__ void StoreKeyGradients(const HeadOnDevice& head, int first_key,
                                                  int warp_row,
                                                  const FragmentC (&dk_sums)[kM][kDim / 8],
                                                  const FragmentC (&dv_sums)[kM][kDim / 8],
                                                  Tiles& tiles,
                                                  const AttentionOperands<Bf16>& gradient) {
  const AttentionCall& call = head.call;
  float dk_factor[kM][2], dv_factor[kM][2];
  KeyFactors(head, first_key, dk_factor, dv_factor);
  const int64_t at = head.At(call.keys, call.dkv_stride, first_key);
  const int keys = call.keys - first_key;
  StoreRows<kDim>(dk_sums, dk_factor, tiles.k, warp_row,
                  {gradient.k + at, call.dkv_stride, keys, call.head_dim});
  StoreRows<kDim>(dv_sums, dv_factor, tiles.v, warp_row,
                  {gradient.v + at, call.dkv_stride, keys, call.head_dim});
}

// Number of a tile's keys that the warp's part of a tile of queries reaches.
template <int kDim>
__device__ __forceinline__ int ReachedKeys(const HeadOnDevice& head, int first_query,
                                           int block_key) {
  using Part = QueryPart<kDim>;
  const int last_query = first_query + Part::FirstRow() + Part::kRows - 1;
  return min(head.Visible(last_query) - block_key, kBackwardKeyTile);
}

// Loads a tile of keys, and the first tile of queries that reaches it into stage 0.
template <int kDim, bool kDropout, int kThreads>
__device__ __forceinline__ void LoadTile(const HeadOnDevice& head,
                                         const AttentionBackwardArgs<Bf16>& a,
                                         const QuerySource<kDim, kThreads>& source,
                                         const QueriesOfKeys& queries, int first_key,
                                         OnePassTiles<kDim, kDropout>& tiles) {
  BeginKeys<kDim, kBackwardKeyTile, kThreads>(head, a, first_key, tiles.k, tiles.v);
  if (queries.first < queries.end) {
    source.BeginCopy(head, queries.first, 0, tiles);
    tiles.Draw(head, queries.first, first_key);
  }
  CommitCopies();
  source.Stat(head, queries.first).Store(tiles.lse_log2, tiles.dot);
  WaitForTiles();
}

// The keys of this block of threads: which head of the run, and which block of its keys.
struct KeyBlock {
  int head;
  int index;

  __device__ __forceinline__ explicit KeyBlock(const SumsLayout& layout)
      : head(static_cast<int>(blockIdx.x % static_cast<unsigned>(layout.heads))),
        index(static_cast<int>(blockIdx.x / static_cast<unsigned>(layout.heads))) {}
};

// A block: (block of keys, head). Blocks of early keys, which have the most queries with causal
// attention, come first, so that light ones come last.
template <int kDim, bool kDropout>
__global__ void __launch_bounds__(OnePass<kDim, kDropout>::kThreads,
                                  OnePass<kDim, kDropout>::kBlocksAtOnce)
    OnePassKernel(AttentionCall call, SumsLayout layout, AttentionBackwardArgs<Bf16> a,
                  const float* __restrict__ log_sum_exp, const float* __restrict__ row_dots,
                  float* sums) {
  using B = OnePass<kDim, kDropout>;
  auto* const tiles = SharedMemory<OnePassTiles<kDim, kDropout>>();
  const KeyBlock block(layout);
  const HeadOnDevice head(call, a.shape.key_counts, layout.first_head + block.head);
  float* const block_sums = sums + layout.Begin(block.head, block.index) * (kMmaTile * kDim);
  const QuerySource<kDim, B::kThreads> source(head, a, log_sum_exp, row_dots);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * B::kWarpRows;
  const LeftRows<kDim, B::kM, false> left_k(tiles->k, warp_row), left_v(tiles->v, warp_row);

#pragma unroll 1
  for (int tile = 0; tile < layout.tiles_of_block; ++tile) {
    const int block_key = (block.index * layout.tiles_of_block + tile) * kBackwardKeyTile;
    if (block_key >= call.keys) break;
    const QueriesOfKeys queries(head, block_key);
    LoadTile(head, a, source, queries, block_key, *tiles);

    const int first_key = block_key + warp_row;
    FragmentC dk_sums[B::kM][kDim / 8] = {}, dv_sums[B::kM][kDim / 8] = {};
    int stage = 0;
#pragma unroll 1
    for (int first_query = queries.first; first_query < queries.end;
         first_query += kMmaTile, stage ^= 1) {
      const int next_query = first_query + kMmaTile;
      if (next_query < queries.end) source.BeginCopy(head, next_query, stage ^ 1, *tiles);
      CommitCopies();
#pragma unroll 1
      for (int row = 0; row < kMmaTile; row += B::kChunk) {
        // Without causality every query reaches every key.
        const int diagonal = call.causal ? first_query + row - first_key : kBackwardKeyTile;
        if (diagonal + B::kChunk <= 0 || first_key >= head.keys) continue;
        FragmentC weights[B::kM][B::kN], dscores[B::kM][B::kN];
        MultiplyRows(left_k, tiles->q[stage], row, weights);
        MultiplyRows(left_v, tiles->dout[stage], row, dscores);
        WeightGradients<kDropout>(call, warp_row, diagonal, head.keys - first_key,
                                  tiles->NumbersFrom(row), weights, dscores);
        AddProduct<kDim>(weights, tiles->dout[stage], row, dv_sums);
        StoreScoreGradients(dscores, warp_row, row, tiles->dscores);
        AddProduct<kDim>(dscores, tiles->q[stage], row, dk_sums);
      }
      float* const tile_sums = block_sums + int64_t{first_query / kMmaTile} * (kMmaTile * kDim);
      QueryPart<kDim> before, part;
      const NextStat next = source.Stat(head, next_query);
      if (tile > 0) before.Load(tile_sums);
      __syncthreads();
      part.AddProduct(tiles->dscores, tiles->k, ReachedKeys<kDim>(head, first_query, block_key));
      part.Add(before);
      part.Store(tile_sums);
      next.Store(tiles->lse_log2, tiles->dot);
      if (next_query < queries.end) tiles->Draw(head, next_query, block_key);
      WaitForTiles();
    }
    StoreKeyGradients<kDim>(head, first_key, warp_row, dk_sums, dv_sums, *tiles, a.gradient);
    __syncthreads();
  }
}

// dQ of a tile of queries: the sum over its head's blocks, by pairs of tiles of keys.
template <int kDim>
__global__ void __launch_bounds__(OnePass<kDim>::kThreads)
    SumQueryGradientKernel(AttentionCall call, SumsLayout layout, AttentionBackwardArgs<Bf16> a,
                           const float* __restrict__ sums) {
  using Part = QueryPart<kDim>;
  constexpr int kPartSize = Part::kRows * Part::kColumns;
  auto* const rounded = SharedMemory<Bf16>() + Part::Warp() * kPartSize;
  const int query_tile = static_cast<int>(blockIdx.x % static_cast<unsigned>(layout.query_tiles));
  const int place = static_cast<int>(blockIdx.x / static_cast<unsigned>(layout.query_tiles));
  const HeadOnDevice head(call, a.shape.key_counts, layout.first_head + place);
  const int last_query = min((query_tile + 1) * kMmaTile, call.queries) - 1;
  // Tiles of keys, and blocks of tiles, that the tile's queries reach.
  const int tiles = (head.Visible(last_query) + kBackwardKeyTile - 1) / kBackwardKeyTile;
  const int blocks = (tiles + layout.tiles_of_block - 1) / layout.tiles_of_block;
  const int blocks_of_pair = 2 / layout.tiles_of_block;
  const auto load = [&](int block, Part& part) {
    part.Load(sums + (layout.Begin(place, block) + query_tile) * (kMmaTile * kDim));
  };
  Part total;
  for (int block = 0; block < blocks; block += blocks_of_pair) {
    Part one, other;
    load(block, one);
    if (blocks_of_pair == 2 && block + 1 < blocks) load(block + 1, other);
    one.Add(other);
    total.Add(one);
  }
  float factor[Part::kM][2];
#pragma unroll
  for (int i = 0; i < 2 * Part::kM; ++i) factor[i / 2][i % 2] = call.scale;
  const int first_query = query_tile * kMmaTile + Part::FirstRow();
  StoreRows<Part::kColumns>(
      total.of, factor, rounded, 0,
      {a.gradient.q + head.At(call.queries, call.dq_stride, first_query) + Part::FirstColumn(),
       call.dq_stride, call.queries - first_query, call.head_dim - Part::FirstColumn()});
}

template <int kDim, bool kDropout>
absl::Status Run(const AttentionCall& call, const AttentionBackwardPlan& plan,
                 const AttentionBackwardArgs<Bf16>& args, const float* row_dots,
                 const Stream& stream) {
  using B = OnePass<kDim, kDropout>;
  ASSIGN_OR_RETURN(const ScratchBuffer scratch,
                   ScratchBuffer::Create(static_cast<size_t>(plan.scratch_bytes), stream));
  float* const sums = scratch.As<float>();
  const int64_t heads = call.batch * call.heads;
  for (int64_t first = 0; first < heads; first += plan.heads_at_once) {
    const SumsLayout layout = {
        .first_head = first,
        .heads = static_cast<int>(std::min(plan.heads_at_once, heads - first)),
        .query_tiles = TilesOf(call.queries, kMmaTile),
        .tiles_of_block = static_cast<int>(plan.tiles_of_block),
        .sum_tiles_of_head = plan.sum_tiles_of_head,
        .causal = call.causal};
    if (call.keys != 0) {
      const auto blocks = static_cast<unsigned>(plan.blocks_of_head * layout.heads);
      RETURN_IF_ERROR(Launch(OnePassKernel<kDim, kDropout>,
                             {blocks, B::kThreads, stream, sizeof(OnePassTiles<kDim, kDropout>)},
                             call, layout, args, args.log_sum_exp, row_dots, sums));
    }
    if (call.queries != 0) {
      const auto blocks = static_cast<unsigned>(layout.query_tiles * int64_t{layout.heads});
      RETURN_IF_ERROR(Launch(SumQueryGradientKernel<kDim>,
                             {blocks, B::kThreads, stream, kMmaTile * kDim * sizeof(Bf16)}, call,
                             layout, args, sums));
    }
  }
  return absl::OkStatus();
}

}  // namespace

size_t OnePassSharedBytes(const AttentionCall& call) {
  return call.head_dim <= 32   ? sizeof(OnePassTiles<32, true>)
         : call.head_dim <= 64 ? sizeof(OnePassTiles<64, true>)
                               : sizeof(OnePassTiles<128, true>);
}

absl::Status OnePassAttentionBackward(const AttentionCall& call, const AttentionBackwardPlan& plan,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream) {
  const bool drop = call.dropout.threshold != 0;
  const auto run = call.head_dim <= 32   ? (drop ? Run<32, true> : Run<32, false>)
                   : call.head_dim <= 64 ? (drop ? Run<64, true> : Run<64, false>)
                                         : (drop ? Run<128, true> : Run<128, false>);
  return run(call, plan, args, row_dots, stream);
}

}  // namespace tug::kernels::cuda
