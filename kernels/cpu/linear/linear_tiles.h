// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_LINEAR_TILES_H_
#define TUG_KERNELS_CPU_LINEAR_LINEAR_TILES_H_

#include <algorithm>
#include <cstdint>

#include "base/cpu/thread_pool.h"

namespace tug::kernels {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Tile {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// Maximum tile size for a kind of product.
struct TileLimit {
  int64_t rows;
  int64_t columns;
  bool wide = false;  // prefers fewer rows to fewer columns
};

// Division of a result of the products in kernels/linear.h, m rows and n columns, into tiles. It
// depends on (m, n) and the kind of product alone, so bits do not depend on threads.
class Tiling {
 public:
  // REQUIRES: m, n >= 0; limits are powers of two.
  Tiling(TileLimit limit, int64_t m, int64_t n) : m_(m), n_(n) {
    Cut(limit);
    // Square tiles copy and read least, so halve the longer side unless the limit is wide.
    while (tiles() < kTilesWanted && (limit.rows > kMinRows || limit.columns > kMinColumns)) {
      const bool narrower = limit.columns > kMinColumns &&
                            (limit.rows == kMinRows || (limit.columns > limit.rows && !limit.wide));
      (narrower ? limit.columns : limit.rows) /= 2;
      Cut(limit);
    }
  }

  int64_t column_tiles() const { return CeilDiv(n_, columns_); }
  int64_t tiles() const { return row_tiles_ * column_tiles(); }

  // Consecutive tiles share columns: the weights of a tile stay in cache while its rows pass.
  Tile At(int64_t tile) const {
    const int64_t row = tile % row_tiles_ * rows_;
    const int64_t column = tile / row_tiles_ * columns_;
    return {row, column, std::min(rows_, m_ - row), std::min(columns_, n_ - column)};
  }

  // Calls body(tile) for each tile, in tasks of the pool.
  template <typename Body>
  void ForEach(ThreadPool& pool, const Body& body) const {
    pool.ParallelFor(tiles(), [&](int64_t tile) { body(At(tile)); });
  }

 private:
  static constexpr int64_t kMinRows = 64;
  static constexpr int64_t kMinColumns = 128;
  static constexpr int64_t kColumnBlock = 64;  // columns of a block of packed weights
  static constexpr int64_t kTilesWanted = 32;

  // Divides columns as equally as possible, in whole blocks.
  void Cut(TileLimit limit) {
    rows_ = limit.rows;
    row_tiles_ = CeilDiv(m_, rows_);
    const int64_t parts = std::max<int64_t>(1, CeilDiv(n_, limit.columns));
    columns_ = std::max<int64_t>(1, CeilDiv(CeilDiv(n_, parts), kColumnBlock)) * kColumnBlock;
  }

  int64_t m_;
  int64_t n_;
  int64_t columns_;
  int64_t rows_;
  int64_t row_tiles_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_LINEAR_LINEAR_TILES_H_
