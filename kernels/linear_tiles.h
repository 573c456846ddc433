#ifndef TUG_KERNELS_LINEAR_TILES_H_
#define TUG_KERNELS_LINEAR_TILES_H_

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Tile {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// How the products of kernels/linear.h are cut: a result of m rows and n columns into tiles that
// depend on (m, n) alone, so that bits do not depend on threads.
class Tiling {
 public:
  // REQUIRES: m, n >= 0.
  Tiling(int64_t m, int64_t n) : m_(m), n_(n), columns_(TileColumns(n)) {
    rows_ = kMaxRows;
    while (rows_ > kMinRows && CeilDiv(m, rows_) * CeilDiv(n, columns_) < kTilesWanted) rows_ /= 2;
    row_tiles_ = CeilDiv(m, rows_);
  }

  int64_t tiles() const { return row_tiles_ * CeilDiv(n_, columns_); }

  // Neighbours share columns: the weights of a tile stay in cache while its rows go by.
  Tile At(int64_t tile) const {
    const int64_t row = tile % row_tiles_ * rows_;
    const int64_t column = tile / row_tiles_ * columns_;
    return {row, column, std::min(rows_, m_ - row), std::min(columns_, n_ - column)};
  }

  // body(tile) for each tile, in tasks.
  template <typename Body>
  void ForEach(ThreadPool& pool, const Body& body) const {
    pool.ParallelFor(tiles(), [&](int64_t tile) { body(At(tile)); });
  }

  // Tiles have one of up to four shapes. A tile of each, `ShapeOf` of it being its place in the
  // list. REQUIRES: tiles() > 0.
  static constexpr int kShapes = 4;
  Tile OfShape(int shape) const {
    const int64_t row = shape & 1 ? row_tiles_ - 1 : 0;
    return At(shape & 2 ? tiles() - row_tiles_ + row : row);
  }
  int ShapeOf(const Tile& tile) const {
    return (tile.rows < rows_ ? 1 : 0) + (tile.columns < columns_ ? 2 : 0);
  }

 private:
  static constexpr int64_t kMaxRows = 128;
  static constexpr int64_t kMinRows = 32;
  static constexpr int64_t kMaxColumns = 256;
  static constexpr int64_t kColumnBlock = 64;  // of packed weights
  static constexpr int64_t kTilesWanted = 64;

  // As equal as can be, in whole blocks.
  static int64_t TileColumns(int64_t n) {
    if (n == 0) return kColumnBlock;
    return CeilDiv(CeilDiv(n, CeilDiv(n, kMaxColumns)), kColumnBlock) * kColumnBlock;
  }

  int64_t m_;
  int64_t n_;
  int64_t columns_;
  int64_t rows_;
  int64_t row_tiles_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LINEAR_TILES_H_
