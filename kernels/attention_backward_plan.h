#ifndef TUG_KERNELS_ATTENTION_BACKWARD_PLAN_H_
#define TUG_KERNELS_ATTENTION_BACKWARD_PLAN_H_

#include <cstdint>

#include "kernels/attention.h"

namespace tug::kernels {

// How the backward pass of kernels/attention_cuda.h is cut on tensor cores, and what memory that
// takes. Of the shape alone, so that it is known where there is no GPU, and that no bits depend on
// the GPU.
//
// In one pass a block (of a CUDA grid) takes tiles of a head's keys, one after another, each
// through all tiles of queries that reach it, and adds what its keys give to the gradient of
// queries to sums of its own in device memory: FP32, one tile of sums for each tile of queries.
inline constexpr int kBackwardKeyTile = 128;
inline constexpr int kBackwardQueryTile = 64;

struct AttentionBackwardLimits {
  // Of sums at a time, but for those of one head at least: a call with more takes its heads in
  // several runs, of the same bits.
  int64_t sum_bytes = int64_t{512} << 20;
  // Tiles of a head's keys: with more, two passes.
  int64_t key_tiles = 64;
  // Blocks that a large GPU computes at a time: an H100 has 132 multiprocessors, of two each.
  int64_t blocks_to_fill = 264;
};

struct AttentionBackwardPlan {
  // Else two passes, seven products in place of five, but no sums: those of a head grow with
  // queries times keys, so that of very many a GPU would have too few heads at a time for want of
  // memory.
  bool one_pass = false;
  // Tiles of keys of a block: 2, so that half of the sums are added to where they still are in the
  // second-level cache; 1 where that would leave a large GPU idle. The same bits: sums are those of
  // pairs of tiles either way.
  int64_t tiles_of_block = 0;
  int64_t blocks_of_head = 0;
  int64_t sum_tiles_of_head = 0;  // of all its blocks
  int64_t heads_at_once = 0;      // (sample, head)
  int64_t scratch_bytes = 0;      // of their sums
};

// Columns of the tiles that a head takes on tensor cores.
constexpr int64_t AttentionTileColumns(int64_t head_dim) {
  return head_dim <= 32 ? 32 : head_dim <= 64 ? 64 : 128;
}

// Pure. key_counts is not read. Of a head_dim that tensor cores do not take: not one_pass.
AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& shape,
                                            const AttentionBackwardLimits& limits = {});

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_BACKWARD_PLAN_H_
