#ifndef TUG_KERNELS_LINEAR_TILE_PRODUCT_H_
#define TUG_KERNELS_LINEAR_TILE_PRODUCT_H_

#include <cstdint>
#include <optional>

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
  std::optional<MatMulForm> form_;  // of the tiles' primitives; none: FP32 products in place
};

// c = a^T b, or with `accumulate` c += a^T b, tile by tile.
template <typename T>
class TransposedTileProduct {
 public:
  // The product of a [k][m] and b [k][n]; c is [m][n].
  TransposedTileProduct(int64_t m, int64_t n, int64_t k, bool accumulate);

  // On the calling thread. a, b, c: the whole matrices. Thread-safe.
  void Run(const Tile& tile, const T* a, const T* b, float* c) const;

 private:
  void RunWidened(const Tile& tile, const T* a, const T* b, float* c) const;

  const int64_t m_;
  const int64_t n_;
  const int64_t k_;
  const bool accumulate_;
  std::optional<MatMulForm> form_;  // of the tiles' primitives; none: FP32 products in place
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LINEAR_TILE_PRODUCT_H_
