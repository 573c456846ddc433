// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_backward_plan.h"

#include <algorithm>

namespace tug::kernels {
namespace {

int64_t TilesOf(int64_t rows, int64_t tile) { return (rows + tile - 1) / tile; }

}  // namespace

AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& shape,
                                            const AttentionBackwardLimits& limits) {
  const int64_t tiles = TilesOf(shape.keys, kBackwardKeyTile);
  const int64_t query_tiles = TilesOf(shape.queries, kBackwardQueryTile);
  const int64_t heads = shape.batch * shape.heads;
  AttentionBackwardPlan plan = {.one_pass = shape.head_dim % 8 == 0 && tiles <= limits.key_tiles};
  if (!plan.one_pass || heads == 0) return plan;
  plan.tiles_of_block = heads * TilesOf(tiles, 2) >= limits.blocks_to_fill ? 2 : 1;
  plan.blocks_of_head = TilesOf(tiles, plan.tiles_of_block);
  for (int64_t block = 0; block < plan.blocks_of_head; ++block) {
    const int64_t first_key = block * plan.tiles_of_block * kBackwardKeyTile;
    plan.sum_tiles_of_head += query_tiles - (shape.causal ? first_key / kBackwardQueryTile : 0);
  }
  const int64_t head_bytes = plan.sum_tiles_of_head * kBackwardQueryTile *
                             AttentionTileColumns(shape.head_dim) *
                             static_cast<int64_t>(sizeof(float));
  plan.heads_at_once =
      std::clamp<int64_t>(limits.sum_bytes / std::max<int64_t>(head_bytes, 1), 1, heads);
  plan.scratch_bytes = plan.heads_at_once * head_bytes;
  return plan;
}

}  // namespace tug::kernels
