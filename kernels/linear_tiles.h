#ifndef TUG_KERNELS_LINEAR_TILES_H_
#define TUG_KERNELS_LINEAR_TILES_H_

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// How the products of kernels/linear.h are cut: a result of m rows and n columns into tiles that
// depend on (m, n) alone, so that bits do not depend on threads. The columns of a tile depend on n
// alone: weights are packed tile by tile before anybody knows m.

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Tiles of as equal width as can be, in multiples of a packed block of 64 columns.
inline int64_t TileColumns(int64_t n) {
  constexpr int64_t kMaxColumns = 512;
  constexpr int64_t kBlock = 64;
  if (n == 0) return kBlock;
  return CeilDiv(CeilDiv(n, CeilDiv(n, kMaxColumns)), kBlock) * kBlock;
}

struct Tile {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
  int64_t column_tile;  // column / TileColumns(n)
};

struct Tiling {
  // REQUIRES: m, n >= 0.
  Tiling(int64_t m, int64_t n)
      : m(m),
        n(n),
        columns(TileColumns(n)),
        rows(TileRows(m, CeilDiv(n, columns))),
        row_tiles(CeilDiv(m, rows)),
        tiles(row_tiles * CeilDiv(n, columns)) {}

  // Neighbours share columns: the weights of a tile stay in cache while its rows go by.
  Tile At(int64_t tile) const {
    const int64_t row = tile % row_tiles * rows;
    const int64_t column_tile = tile / row_tiles;
    const int64_t column = column_tile * columns;
    return {row, column, std::min(rows, m - row), std::min(columns, n - column), column_tile};
  }

  // body(tile) for each tile, in tasks.
  template <typename Body>
  void ForEach(ThreadPool& pool, const Body& body) const {
    pool.ParallelFor(tiles, [&](int64_t tile) { body(At(tile)); });
  }

  // Constant after construction.
  int64_t m;
  int64_t n;
  int64_t columns;
  int64_t rows;
  int64_t row_tiles;
  int64_t tiles;

 private:
  static int64_t TileRows(int64_t m, int64_t column_tiles) {
    constexpr int64_t kMaxRows = 128;
    constexpr int64_t kMinRows = 32;
    constexpr int64_t kTilesWanted = 64;
    int64_t rows = kMaxRows;
    while (rows > kMinRows && CeilDiv(m, rows) * column_tiles < kTilesWanted) rows /= 2;
    return rows;
  }
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LINEAR_TILES_H_
