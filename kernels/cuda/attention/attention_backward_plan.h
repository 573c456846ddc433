// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_BACKWARD_PLAN_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_BACKWARD_PLAN_H_

#include <cstdint>

#include "kernels/attention.h"

namespace tug::kernels {

// Division of the backward pass of kernels/cuda/attention/attention_cuda.h on tensor cores, and its
// memory. Depends on the shape alone, so it is known without a GPU and no bits depend on the GPU.
//
// In one pass a block (of a CUDA grid) processes tiles of a head's keys one after another, each
// with all tiles of queries that reach it. It adds its keys' contribution to the gradient of
// queries to its own sums in device memory: FP32, one tile of sums per tile of queries.
inline constexpr int kBackwardKeyTile = 128;
inline constexpr int kBackwardQueryTile = 64;

struct AttentionBackwardLimits {
  // Sums held at once, but at least those of one head. A call with more processes its heads in
  // several runs, with the same bits.
  int64_t sum_bytes = int64_t{512} << 20;
  // Maximum tiles of a head's keys for one pass; with more, two passes.
  int64_t key_tiles = 64;
  // Blocks that a large GPU runs concurrently: an H100 has 132 multiprocessors with two each.
  int64_t blocks_to_fill = 264;
};

struct AttentionBackwardPlan {
  // false: two passes, with seven products instead of five but no sums. The sums of a head grow
  // with queries times keys; with very many of them memory would limit a GPU to too few heads at
  // once.
  bool one_pass = false;
  // Tiles of keys per block: 2, so that half of the additions to sums hit the second-level cache; 1
  // if 2 would leave a large GPU idle. Bits are the same: sums are those of pairs of tiles either
  // way.
  int64_t tiles_of_block = 0;
  int64_t blocks_of_head = 0;
  int64_t sum_tiles_of_head = 0;  // over all its blocks
  int64_t heads_at_once = 0;      // (sample, head) pairs per run
  int64_t scratch_bytes = 0;      // of the sums of these heads
};

// Columns of a head's tiles on tensor cores.
constexpr int64_t AttentionTileColumns(int64_t head_dim) {
  return head_dim <= 32 ? 32 : head_dim <= 64 ? 64 : 128;
}

// Pure. key_counts is not read. Not one_pass if tensor cores do not support head_dim.
AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& shape,
                                            const AttentionBackwardLimits& limits = {});

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_BACKWARD_PLAN_H_
