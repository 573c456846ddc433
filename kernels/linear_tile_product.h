#ifndef TUG_KERNELS_LINEAR_TILE_PRODUCT_H_
#define TUG_KERNELS_LINEAR_TILE_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/linear.h"
#include "kernels/linear_tiles.h"
#include "kernels/matmul_primitive.h"

namespace tug::kernels {

// The sums of a product with weights, tile by tile: of a W, or with kYes of a W^T.
template <typename T>
class LinearTileProduct {
 public:
  // The weights stay the caller's and must outlive the product. REQUIRES: tiling.tiles() > 0.
  LinearTileProduct(const LinearWeights<T>& weights, Transpose transpose, const Tiling& tiling);

  // sums [tile.rows][tile.columns] = the tile of the product, on the calling thread.
  //   a: the whole matrix [m][k]
  // Thread-safe.
  void Run(const Tile& tile, const T* a, float* sums) const;

 private:
  void RunWidened(const Tile& tile, const T* a, float* sums) const;

  const LinearWeights<T>& weights_;
  const bool forward_;
  const int64_t k_;
  const int64_t n_;
  const Transpose transpose_stored_;  // whether the matrix as stored must be transposed
  std::optional<MatMulForm> form_;    // of the tiles' primitives; none: FP32 products in place
};

template <typename T>
struct TransposedProduct {
  int64_t m, n, k;
  const T* a;  // [k][m]
  const T* b;  // [k][n]
  bool accumulate;
};

// c = a^T b, or with `accumulate` c += a^T b, tile by tile; c is [m][n].
// Bf16 where the machine has such products: a transposed and b packed, once for all tiles. A tile
// as wide as c shares its rows of a with no other: it transposes them itself, and its sums go
// straight to c.
template <typename T>
class TransposedTileProduct {
 public:
  // How many of k rows one product should have, at least 1: a caller with more makes one product
  // after the other, which bounds the memory of the copies.
  static int64_t RowsAtOnce(int64_t k);

  // Copies on the pool. The copies are memory that the calling thread keeps: one product at a time
  // on a thread. a and b must outlive this. REQUIRES: tiling.tiles() > 0.
  TransposedTileProduct(ThreadPool& pool, const Tiling& tiling, const TransposedProduct<T>& of);

  // On the calling thread. c: the whole matrix. Thread-safe.
  void Run(const Tile& tile, float* c) const;

 private:
  void Pack(ThreadPool& pool);
  void RunWidened(const Tile& tile, float* c) const;

  const TransposedProduct<T> of_;
  const bool wide_tiles_;             // as wide as c
  std::optional<MatMulForm> form_;    // of the tiles' primitives; none: FP32 products in place
  const Bf16* transposed_ = nullptr;  // a; nullptr: tiles transpose it
  const Bf16* packed_ = nullptr;      // b
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LINEAR_TILE_PRODUCT_H_
