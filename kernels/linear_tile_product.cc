#include "kernels/linear_tile_product.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "kernels/pack_bf16.h"
#include "kernels/store_tile.h"
#include "kernels/thread_scratch.h"

namespace tug::kernels {
namespace {

using Operands = MatMulForm::Operands;

// Float by transposed: with fewer rows oneDNN's sgemm is faster than its primitive, which copies B
// (1 row by 256 x 768: 47 GFLOP/s, 16; 8 rows: 85, 70; 16 rows: 63, 77).
constexpr int64_t kRowsForPrimitive = 16;

// Of the dimension that is summed: what is widened at once.
constexpr int64_t kWidenedBlock = 256;

// Rows that a transposed product takes at once, about: enough that what each pass over c costs is
// little.
constexpr int64_t kTransposedRows = 1056;

// What a task transposes.
constexpr int64_t kStripColumns = 64;

// to [rows][columns] = the corner of from [][stride].
void Widen(const Bf16* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r) FloatFromBf16(from + r * stride, to + r * columns, columns);
}

// The tile's product by the calling thread's primitive.
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
    MatMulInTask(Transpose::kNo, transpose_stored_, tile.rows, tile.columns, k_, rows, k_, b,
                 transposed ? k_ : n_, 0.0f, sums, tile.columns);
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
    MatMulInTask(Transpose::kNo, transpose_stored_, tile.rows, tile.columns, block, wide, block, b,
                 transposed ? k_ : n_, 1.0f, sums, tile.columns);
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
  // As equal as can be, and an odd number of half cache lines: rows of a power of two of bytes
  // would fall on few of the cache's sets.
  const int64_t parts = CeilDiv(k, kTransposedRows);
  return CeilDiv(CeilDiv(k, parts), 64) * 64 + 32;
}

template <typename T>
TransposedTileProduct<T>::TransposedTileProduct(ThreadPool& pool, const Tiling& tiling, int64_t m,
                                                int64_t n, int64_t k, const T* a, const T* b,
                                                bool accumulate)
    : m_(m),
      n_(n),
      k_(k),
      a_(a),
      b_(b),
      accumulate_(accumulate),
      wide_tiles_(tiling.column_tiles() == 1) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (k > 0 && HasBf16Products()) Pack(pool);
  }
}

template <>
void TransposedTileProduct<Bf16>::Pack(ThreadPool& pool) {
  const int64_t stride = TransposedStride(k_);
  const int64_t strips = wide_tiles_ ? 0 : CeilDiv(m_, kStripColumns);
  const size_t packed_bytes = PackedBytes(k_, n_);
  const size_t transposed_bytes = wide_tiles_ ? 0 : static_cast<size_t>(m_ * stride) * sizeof(Bf16);
  thread_local ThreadScratch scratch;
  auto* const packed = reinterpret_cast<Bf16*>(scratch.Bytes(packed_bytes + transposed_bytes));
  Bf16* const transposed = wide_tiles_ ? nullptr : packed + packed_bytes / sizeof(Bf16);
  ZeroPadding(k_, n_, packed);
  pool.ParallelFor(strips + PackParts(Transpose::kNo, k_, n_), [&](int64_t task) {
    if (task < strips) {
      const int64_t at = task * kStripColumns;
      TransposeBf16(k_, std::min(kStripColumns, m_ - at), m_, a_ + at, transposed + at * stride);
    } else {
      PackPart(task - strips, Transpose::kNo, k_, n_, b_, packed);
    }
  });
  transposed_ = transposed;
  packed_ = packed;
  form_ = {
      .operands = Operands::kBf16ByPacked, .accumulate = accumulate_ && wide_tiles_, .k = stride};
}

template <>
void TransposedTileProduct<float>::Run(const Tile& tile, float* c) const {
  MatMulInTask(Transpose::kYes, Transpose::kNo, tile.rows, tile.columns, k_, a_ + tile.row, m_,
               b_ + tile.column, n_, accumulate_ ? 1.0f : 0.0f, c + tile.row * n_ + tile.column,
               n_);
}

template <>
void TransposedTileProduct<Bf16>::RunWidened(const Tile& tile, float* c) const {
  thread_local ThreadScratch scratch;
  float* const wide_a = scratch.Floats(kWidenedBlock * (tile.rows + tile.columns));
  float* const wide_b = wide_a + kWidenedBlock * tile.rows;
  for (int64_t at = 0; at == 0 || at < k_; at += kWidenedBlock) {
    const int64_t block = std::min(kWidenedBlock, k_ - at);
    Widen(a_ + at * m_ + tile.row, m_, block, tile.rows, wide_a);
    Widen(b_ + at * n_ + tile.column, n_, block, tile.columns, wide_b);
    MatMulInTask(Transpose::kYes, Transpose::kNo, tile.rows, tile.columns, block, wide_a, tile.rows,
                 wide_b, tile.columns, accumulate_ || at > 0 ? 1.0f : 0.0f,
                 c + tile.row * n_ + tile.column, n_);
  }
}

template <>
void TransposedTileProduct<Bf16>::Run(const Tile& tile, float* c) const {
  if (!form_.has_value()) return RunWidened(tile, c);
  const int64_t stride = TransposedStride(k_);
  thread_local ThreadScratch scratch;
  if (wide_tiles_) {
    auto* const rows = reinterpret_cast<Bf16*>(
        scratch.Bytes(static_cast<size_t>(tile.rows * stride) * sizeof(Bf16)));
    TransposeBf16(k_, tile.rows, m_, a_ + tile.row, rows);
    RunPrimitive(*form_, tile, rows, packed_, c + tile.row * n_);
    return;
  }
  float* const sums = scratch.Floats(tile.rows * tile.columns);
  RunPrimitive(*form_, tile, transposed_ + tile.row * stride,
               packed_ + PackedBytes(k_, tile.column) / sizeof(Bf16), sums);
  StoreTile(tile.rows, tile.columns, sums, /*bias=*/nullptr, accumulate_,
            c + tile.row * n_ + tile.column, n_);
}

template class LinearTileProduct<float>;
template class LinearTileProduct<Bf16>;
template class TransposedTileProduct<float>;
template class TransposedTileProduct<Bf16>;

}  // namespace tug::kernels
