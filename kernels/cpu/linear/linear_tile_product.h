// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_LINEAR_TILE_PRODUCT_H_
#define TUG_KERNELS_CPU_LINEAR_LINEAR_TILE_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/cpu/linear/linear_tiles.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/linear.h"

namespace tug::kernels {

// Computes a product with weights tile by tile: a W, or with kYes a W^T.
template <typename T>
class LinearTileProduct {
 public:
  // The weights remain the caller's and must outlive the product. REQUIRES: tiling.tiles() > 0.
  LinearTileProduct(const LinearWeights<T>& weights, Transpose transpose, const Tiling& tiling);

  // sums [tile.rows][tile.columns] = this tile of the product, computed on the calling thread.
  //   a: the whole matrix [m][k]
  // Thread-safe.
  void Run(const Tile& tile, const T* a, float* sums) const;

 private:
  void RunWidened(const Tile& tile, const T* a, float* sums) const;

  const LinearWeights<T>& weights_;
  const bool forward_;
  const int64_t k_;
  const int64_t n_;
  const Transpose transpose_stored_;  // whether the stored matrix must be transposed
  std::optional<MatMulForm> form_;    // for the tiles' primitives; none: FP32 products in place
};

template <typename T>
struct TransposedProduct {
  int64_t m, n, k;
  const T* a;  // [k][m]
  const T* b;  // [k][n]
  bool accumulate;
};

// c = a^T b, or with `accumulate` c += a^T b, tile by tile; c is [m][n].
// Bf16 with bf16 instructions: a is transposed and b packed, once for all tiles. A tile as wide as
// c shares its rows of a with no other tile: it transposes them itself and writes its sums directly
// to c.
template <typename T>
class TransposedTileProduct {
 public:
  // Number of rows, out of k, that one product should have, at least 1. A caller with more makes
  // successive products, which bounds the memory for copies.
  static int64_t RowsAtOnce(int64_t k);

  // Makes the copies on the pool, in memory that the calling thread keeps: only one product per
  // thread at a time. a and b must outlive this object. REQUIRES: tiling.tiles() > 0.
  TransposedTileProduct(ThreadPool& pool, const Tiling& tiling, const TransposedProduct<T>& of);

  // Computes a tile on the calling thread. c: the whole matrix. Thread-safe.
  void Run(const Tile& tile, float* c) const;

 private:
  void Pack(ThreadPool& pool);
  void RunWidened(const Tile& tile, float* c) const;

  const TransposedProduct<T> of_;
  const bool wide_tiles_;             // tiles are as wide as c
  std::optional<MatMulForm> form_;    // for the tiles' primitives; none: FP32 products in place
  const Bf16* transposed_ = nullptr;  // a^T; nullptr: each tile transposes its rows
  const Bf16* packed_ = nullptr;      // b, packed
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_LINEAR_LINEAR_TILE_PRODUCT_H_
