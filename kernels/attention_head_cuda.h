#ifndef TUG_KERNELS_ATTENTION_HEAD_CUDA_H_
#define TUG_KERNELS_ATTENTION_HEAD_CUDA_H_

// What attention's kernels know of a call, and how it is cut into blocks. For .cu files.

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cuda_language.h"
#include "kernels/dropout_mask_cuda.h"

namespace tug::kernels::cuda {

// Of a call, besides its pointers. Strides stand here too: taken from the arguments they would cost
// the kernel of one pass a register that it lacks.
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
  int64_t dkv_stride;  // likewise
  float scale;         // 1 / sqrt(head_dim)
  DropoutMask dropout;

  __host__ __device__ int64_t width() const { return int64_t{heads} * head_dim; }
};

// One (sample, head), the twin of AttentionHead of kernels/attention_head.h.
struct HeadOnDevice {
  const AttentionCall& call;
  int64_t sample;
  int head;
  int keys;  // that are not padding

  __device__ HeadOnDevice(const AttentionCall& of, const int32_t* key_counts, int64_t index)
      : call(of),
        sample(index / of.heads),
        head(static_cast<int>(index % of.heads)),
        keys(key_counts == nullptr ? of.keys : min(key_counts[sample], of.keys)) {}

  // Where row `row` of the head begins in a matrix of `rows` rows a sample.
  __device__ int64_t At(int rows, int64_t stride, int row) const {
    return (sample * rows + row) * stride + int64_t{head} * call.head_dim;
  }
  // Of query `row`, in log_sum_exp.
  __device__ int64_t StatsAt(int row) const {
    return (sample * call.heads + head) * call.queries + row;
  }
  // The first key that `query` does not reach.
  __device__ int Visible(int query) const { return call.causal ? min(query + 1, keys) : keys; }

  // Decide on four keys of the query: key 64 block + 16 w + lane is kept when word w is at least
  // the threshold. lane < 16.
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

// Blocks of a grid: of each head, its tiles one after another, so that heads' keys stay in the
// second-level cache.
inline int TilesOf(int rows, int tile) { return (rows + tile - 1) / tile; }
inline unsigned AttentionBlocks(const AttentionCall& call, int rows, int tile) {
  return static_cast<unsigned>(call.batch * call.heads * TilesOf(rows, tile));
}

// This block's head, and its tile of `tile` of that head's `rows` rows. With causal attention late
// queries reach the most keys: kLastFirst begins with them, so that light blocks fill the end.
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

#endif  // TUG_KERNELS_ATTENTION_HEAD_CUDA_H_
