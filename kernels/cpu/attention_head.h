// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_ATTENTION_HEAD_H_
#define TUG_KERNELS_CPU_ATTENTION_HEAD_H_

// Division of attention into tasks and blocks, for its .cc files.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels {

// One (sample, head) pair.
struct AttentionHead {
  const AttentionShape& shape;
  const DropoutKeeper& keeper;
  int64_t sample;
  int64_t head;
  int64_t keys;  // keys of the sample, without padding
  float scale;

  AttentionHead(const AttentionShape& of, const DropoutKeeper& dropout, int64_t task)
      : shape(of),
        keeper(dropout),
        sample(task / of.heads),
        head(task % of.heads),
        keys(of.key_counts == nullptr ? of.keys : of.key_counts[sample]),
        scale(1.0f / std::sqrt(static_cast<float>(of.head_dim))) {
    TUG_CHECK(keys >= std::min<int64_t>(1, of.keys) && keys <= of.keys)
        << "keys of sample " << sample << ": " << keys;
  }

  // Offset of the head in a matrix with `rows` rows per sample.
  int64_t At(int64_t rows, int64_t stride) const {
    return sample * rows * stride + head * shape.head_dim;
  }
  // Offset of the first query in log_sum_exp.
  int64_t StatsAt() const { return (sample * shape.heads + head) * shape.queries; }
  // First key that `query` does not reach.
  int64_t Visible(int64_t query) const { return shape.causal ? std::min(query + 1, keys) : keys; }
  // The row of `count` scores of a query.
  ScoreRow RowOf(int64_t query, int64_t count, float lse) const {
    const int64_t blocks = (shape.keys + 63) / 64;
    return {.dropout = {keeper, static_cast<uint32_t>(sample),
                        static_cast<uint32_t>((head * shape.queries + query) * blocks)},
            .visible = Visible(query),
            .count = count,
            .scale = scale,
            .lse = lse};
  }
};

// Queries [begin, end) of a head. Together they reach the keys [0, reach).
struct AttentionBlock {
  static constexpr int64_t kQueries = 64;

  int64_t begin;
  int64_t end;
  int64_t reach;

  AttentionBlock(const AttentionHead& head, int64_t index)
      : begin(index * kQueries),
        end(std::min(begin + kQueries, head.shape.queries)),
        reach(head.Visible(end - 1)) {}
  int64_t rows() const { return end - begin; }
};

inline int64_t BlocksOf(const AttentionShape& shape) {
  return (shape.queries + AttentionBlock::kQueries - 1) / AttentionBlock::kQueries;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_ATTENTION_HEAD_H_
