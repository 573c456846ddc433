// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_HEAD_CUDA_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_HEAD_CUDA_H_

// Parameters of a call for attention's kernels, and its division into blocks. For .cu files.

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/dropout_mask_cuda.h"

namespace tug::kernels::cuda {

// Parameters of a call, without its pointers. Strides are included: reading them from the arguments
// would cost the one-pass kernel a register, and it has none left.
struct AttentionCall {
  int64_t batch;
  int queries;
  int keys;
  int heads;
  int head_dim;
  bool causal;
  int64_t q_stride;
  int64_t kv_stride;
  int64_t dq_stride;   // of the gradients; backward only
  int64_t dkv_stride;  // of the gradients; backward only
  float scale;         // 1 / sqrt(head_dim)
  DropoutMask dropout;

  __host__ __device__ int64_t width() const { return int64_t{heads} * head_dim; }
};

// One (sample, head) pair; counterpart of AttentionHead of kernels/cpu/attention_head.h.
struct HeadOnDevice {
  const AttentionCall& call;
  int64_t sample;
  int head;
  int keys;  // keys of the sample, without padding

  __device__ HeadOnDevice(const AttentionCall& of, const int32_t* key_counts, int64_t index)
      : call(of),
        sample(index / of.heads),
        head(static_cast<int>(index % of.heads)),
        keys(key_counts == nullptr ? of.keys : min(key_counts[sample], of.keys)) {}

  // Offset of row `row` of the head in a matrix with `rows` rows per sample.
  __device__ int64_t At(int rows, int64_t stride, int row) const {
    return (sample * rows + row) * stride + int64_t{head} * call.head_dim;
  }
  // Offset of query `row` in log_sum_exp.
  __device__ int64_t StatsAt(int row) const {
    return (sample * call.heads + head) * call.queries + row;
  }
  // First key that `query` does not reach.
  __device__ int Visible(int query) const { return call.causal ? min(query + 1, keys) : keys; }

  // Random words that decide on four keys of a query: key 64 block + 16 w + lane is kept if word w
  // is at least the threshold. REQUIRES: lane < 16.
  struct FourWords {
    unsigned of[4];
  };
  __device__ __forceinline__ FourWords DrawWords(int query, int block, int lane) const {
    const int64_t row = int64_t{head} * call.queries + query;
    const uint4 words = DropoutWords(call.dropout, static_cast<uint32_t>(sample),
                                     (row * ((call.keys + 63) / 64) + block) * 64 + lane);
    return {{words.x, words.y, words.z, words.w}};
  }
};

// Blocks of a grid: the tiles of each head one after another, so that the head's keys stay in the
// second-level cache.
inline int TilesOf(int rows, int tile) { return (rows + tile - 1) / tile; }
inline unsigned AttentionBlocks(const AttentionCall& call, int rows, int tile) {
  return static_cast<unsigned>(call.batch * call.heads * TilesOf(rows, tile));
}

// This block's head, and its tile of `tile` of that head's `rows` rows. With causal attention late
// queries reach the most keys: kLastFirst starts with them, so that light blocks come last.
template <bool kLastFirst>
struct TileOfBlock {
  int64_t head;
  int first_row;

  __device__ TileOfBlock(int rows, int tile) {
    const int tiles = (rows + tile - 1) / tile;
    const int index = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles));
    head = blockIdx.x / static_cast<unsigned>(tiles);
    first_row = (kLastFirst ? tiles - 1 - index : index) * tile;
  }
};

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_HEAD_CUDA_H_
