// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/linear_tile_product.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "kernels/cpu/linear/pack_bf16.h"
#include "kernels/cpu/linear/store_tile.h"
#include "kernels/simd/thread_scratch.h"

namespace tug::kernels {
namespace {

using Operands = MatMulForm::Operands;

// Minimum rows for float by transposed. With fewer, oneDNN's sgemm is faster than its primitive,
// which copies B (GFLOP/s of sgemm and primitive, 256 x 768: 1 row: 47, 16; 8 rows: 85, 70; 16
// rows: 63, 77).
constexpr int64_t kRowsForPrimitive = 16;

// Elements of the summed dimension that are widened at once.
constexpr int64_t kWidenedBlock = 256;

// Approximate rows per transposed product: enough that the cost of a pass over c is small.
constexpr int64_t kTransposedRows = 1056;

// Columns that one task transposes.
constexpr int64_t kStripColumns = 64;

// Widens the corner [rows][columns] of from [][stride] to `to` [rows][columns].
void Widen(const Bf16* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r) FloatFromBf16(from + r * stride, to + r * columns, columns);
}

// Computes the tile's product with the calling thread's primitive.
void RunPrimitive(MatMulForm form, const Tile& tile, const void* a, const void* b, float* c) {
  form.m = tile.rows;
  form.n = tile.columns;
  MatMulPrimitive::Of(form).Run(a, b, c);
}

}  // namespace

template <typename T>
LinearTileProduct<T>::LinearTileProduct(const LinearWeights<T>& weights, Transpose transpose,
                                        const Tiling& tiling)
    : weights_(weights),
      forward_(transpose == Transpose::kNo),
      k_(forward_ ? weights.in() : weights.out()),
      n_(forward_ ? weights.out() : weights.in()),
      transpose_stored_(forward_ == (weights.order() == WeightOrder::kInOut) ? Transpose::kNo
                                                                             : Transpose::kYes) {
  TUG_CHECK(k_ == 0 || weights.view_ != nullptr || weights.forward_.data() != nullptr ||
            weights.widened_.data() != nullptr)
      << "weights are used before their first Bind";
  constexpr bool kBf16 = std::is_same_v<T, Bf16>;
  const bool in_place =
      kBf16 ? !HasBf16Products()
            : transpose_stored_ == Transpose::kNo || tiling.At(0).rows < kRowsForPrimitive;
  if (k_ == 0 || in_place) return;
  form_ = {.operands = kBf16 ? Operands::kBf16ByPacked : Operands::kFloatByTransposed, .k = k_};
}

template <>
void LinearTileProduct<float>::Run(const Tile& tile, const float* a, float* sums) const {
  const float* const rows = a + tile.row * k_;
  const bool transposed = transpose_stored_ == Transpose::kYes;
  const float* const b = weights_.view_ + (transposed ? tile.column * k_ : tile.column);
  if (form_.has_value() && tile.rows >= kRowsForPrimitive) {
    RunPrimitive(*form_, tile, rows, b, sums);
  } else {
    MatMulInTask({.m = tile.rows,
                  .n = tile.columns,
                  .k = k_,
                  .a = {rows, k_},
                  .b = {b, transposed ? k_ : n_, transpose_stored_},
                  .c = sums,
                  .ldc = tile.columns});
  }
}

template <>
void LinearTileProduct<Bf16>::RunWidened(const Tile& tile, const Bf16* a, float* sums) const {
  thread_local ThreadScratch scratch;
  float* const wide = scratch.Floats(tile.rows * kWidenedBlock);
  std::fill_n(sums, tile.rows * tile.columns, 0.0f);
  for (int64_t at = 0; at < k_; at += kWidenedBlock) {
    const int64_t block = std::min(kWidenedBlock, k_ - at);
    Widen(a + tile.row * k_ + at, k_, tile.rows, block, wide);
    const bool transposed = transpose_stored_ == Transpose::kYes;
    const float* const b = weights_.widened_.floats().data() +
                           (transposed ? tile.column * k_ + at : at * n_ + tile.column);
    MatMulInTask({.m = tile.rows,
                  .n = tile.columns,
                  .k = block,
                  .a = {wide, block},
                  .b = {b, transposed ? k_ : n_, transpose_stored_},
                  .c = sums,
                  .ldc = tile.columns,
                  .accumulate = true});
  }
}

template <>
void LinearTileProduct<Bf16>::Run(const Tile& tile, const Bf16* a, float* sums) const {
  if (!form_.has_value()) return RunWidened(tile, a, sums);
  const AlignedBuffer& packed = forward_ ? weights_.forward_ : weights_.backward_;
  RunPrimitive(*form_, tile, a + tile.row * k_, packed.data() + PackedBytes(k_, tile.column), sums);
}

template <typename T>
int64_t TransposedTileProduct<T>::RowsAtOnce(int64_t k) {
  if (std::is_same_v<T, float> || !HasBf16Products() || k <= kTransposedRows) {
    return std::max<int64_t>(k, 1);
  }
  // Products of equal size, with an odd number of half cache lines per row: rows of a power of two
  // of bytes would map to few of the cache's sets.
  const int64_t parts = CeilDiv(k, kTransposedRows);
  return CeilDiv(CeilDiv(k, parts), 64) * 64 + 32;
}

template <typename T>
TransposedTileProduct<T>::TransposedTileProduct(ThreadPool& pool, const Tiling& tiling,
                                                const TransposedProduct<T>& of)
    : of_(of), wide_tiles_(tiling.column_tiles() == 1) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (of.k > 0 && HasBf16Products()) Pack(pool);
  }
}

template <>
void TransposedTileProduct<Bf16>::Pack(ThreadPool& pool) {
  const int64_t stride = TransposedStride(of_.k);
  const int64_t strips = wide_tiles_ ? 0 : CeilDiv(of_.m, kStripColumns);
  const size_t packed_bytes = PackedBytes(of_.k, of_.n);
  const size_t transposed_bytes =
      wide_tiles_ ? 0 : static_cast<size_t>(of_.m * stride) * sizeof(Bf16);
  thread_local ThreadScratch scratch;
  auto* const packed = reinterpret_cast<Bf16*>(scratch.Bytes(packed_bytes + transposed_bytes));
  Bf16* const transposed = wide_tiles_ ? nullptr : packed + packed_bytes / sizeof(Bf16);
  ZeroPadding(of_.k, of_.n, packed);
  pool.ParallelFor(strips + PackParts(Transpose::kNo, of_.k, of_.n), [&](int64_t task) {
    if (task < strips) {
      const int64_t at = task * kStripColumns;
      TransposeBf16(of_.k, std::min(kStripColumns, of_.m - at), of_.m, of_.a + at,
                    transposed + at * stride);
    } else {
      PackPart(task - strips, Transpose::kNo, of_.k, of_.n, of_.b, packed);
    }
  });
  transposed_ = transposed;
  packed_ = packed;
  form_ = {.operands = Operands::kBf16ByPacked,
           .accumulate = of_.accumulate && wide_tiles_,
           .k = stride};
}

template <>
void TransposedTileProduct<float>::Run(const Tile& tile, float* c) const {
  MatMulInTask({.m = tile.rows,
                .n = tile.columns,
                .k = of_.k,
                .a = {of_.a + tile.row, of_.m, Transpose::kYes},
                .b = {of_.b + tile.column, of_.n},
                .c = c + tile.row * of_.n + tile.column,
                .ldc = of_.n,
                .accumulate = of_.accumulate});
}

template <>
void TransposedTileProduct<Bf16>::RunWidened(const Tile& tile, float* c) const {
  thread_local ThreadScratch scratch;
  float* const wide_a = scratch.Floats(kWidenedBlock * (tile.rows + tile.columns));
  float* const wide_b = wide_a + kWidenedBlock * tile.rows;
  for (int64_t at = 0; at == 0 || at < of_.k; at += kWidenedBlock) {
    const int64_t block = std::min(kWidenedBlock, of_.k - at);
    Widen(of_.a + at * of_.m + tile.row, of_.m, block, tile.rows, wide_a);
    Widen(of_.b + at * of_.n + tile.column, of_.n, block, tile.columns, wide_b);
    MatMulInTask({.m = tile.rows,
                  .n = tile.columns,
                  .k = block,
                  .a = {wide_a, tile.rows, Transpose::kYes},
                  .b = {wide_b, tile.columns},
                  .c = c + tile.row * of_.n + tile.column,
                  .ldc = of_.n,
                  .accumulate = of_.accumulate || at > 0});
  }
}

template <>
void TransposedTileProduct<Bf16>::Run(const Tile& tile, float* c) const {
  if (!form_.has_value()) return RunWidened(tile, c);
  const int64_t stride = TransposedStride(of_.k);
  thread_local ThreadScratch scratch;
  if (wide_tiles_) {
    auto* const rows = reinterpret_cast<Bf16*>(
        scratch.Bytes(static_cast<size_t>(tile.rows * stride) * sizeof(Bf16)));
    TransposeBf16(of_.k, tile.rows, of_.m, of_.a + tile.row, rows);
    RunPrimitive(*form_, tile, rows, packed_, c + tile.row * of_.n);
    return;
  }
  float* const sums = scratch.Floats(tile.rows * tile.columns);
  RunPrimitive(*form_, tile, transposed_ + tile.row * stride,
               packed_ + PackedBytes(of_.k, tile.column) / sizeof(Bf16), sums);
  StoreTile(tile.rows, tile.columns, sums, /*bias=*/nullptr, of_.accumulate,
            c + tile.row * of_.n + tile.column, of_.n);
}

template class LinearTileProduct<float>;
template class LinearTileProduct<Bf16>;
template class TransposedTileProduct<float>;
template class TransposedTileProduct<Bf16>;

}  // namespace tug::kernels
