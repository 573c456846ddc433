// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/pack_bf16.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear/pack_bf16_cpu.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

// Compiled once, not once per instruction set.
#ifndef TUG_KERNELS_PACK_BF16_CPU_ONCE_
#define TUG_KERNELS_PACK_BF16_CPU_ONCE_
namespace tug::kernels {

// Elements of a pair, which is a lane of 32 bits in vectors.
inline constexpr int64_t kPair = 2;
inline constexpr int64_t kPartElements = 1 << 16;

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Rows of B in one part, or with kYes columns.
inline int64_t PartLines(Transpose tb, int64_t k, int64_t n) {
  const bool transposed = tb == Transpose::kYes;
  const int64_t block = transposed ? kPackedColumns : kPackedRows;
  const int64_t width = transposed ? k : n;
  return std::max<int64_t>(1, kPartElements / block / std::max<int64_t>(1, width)) * block;
}

inline void StorePair(Bf16 first, Bf16 second, Bf16* to) {
  to[0] = first;
  to[1] = second;
}

// Packs one column of B, at most 32 rows from row i on, into its positions in the block.
template <typename T>
void PackColumn(int64_t rows, const T* column, Bf16* to) {
  Bf16 rounded[kPackedRows] = {};
  if constexpr (std::is_same_v<T, float>) {
    Bf16FromFloat(column, rounded, rows);
  } else {
    std::copy_n(column, rows, rounded);
  }
  for (int64_t i = 0; i < rows; i += kPair) {
    StorePair(rounded[i], rounded[i + 1], to + i * kPackedColumns);
  }
}

}  // namespace tug::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

using PairTag = hn::RebindToUnsigned<FloatTag>;
using PairVector = hn::Vec<PairTag>;

// Interleaves rows [i, i + 2) of up to 64 columns.
template <typename T>
HWY_INLINE void PackRowPair(int64_t columns, const T* HWY_RESTRICT first,
                            const T* HWY_RESTRICT second, Bf16* HWY_RESTRICT to) {
  const PairTag d;
  for (int64_t j = 0; j < columns; j += FloatLanes()) {
    const int64_t left = columns - j;
    const auto low = hn::BitCast(d, AsStored<Bf16>(LoadUpTo(first + j, left)));
    auto pairs = hn::ShiftRight<16>(low);
    if (second != nullptr) {
      pairs = hn::Or(pairs, hn::BitCast(d, AsStored<Bf16>(LoadUpTo(second + j, left))));
    }
#if HWY_TARGET == HWY_SCALAR  // a single lane is not a vector that may alias
    std::memcpy(to + j * kPair, &pairs, sizeof(pairs));
#else
    StoreUpTo(hn::BitCast(FloatTag(), pairs), reinterpret_cast<float*>(to + j * kPair), left);
#endif
  }
}

// Packs rows [begin, end) of B [k][n].
template <typename T>
void PackRows(int64_t begin, int64_t end, int64_t k, int64_t n, const T* b, Bf16* packed) {
  const int64_t block_elements = RoundUp(k, kPackedRows) * kPackedColumns;
  for (int64_t at = begin; at < end; at += kPackedRows) {
    const int64_t rows_end = std::min(at + kPackedRows, end);
    Bf16* block = packed;
    for (int64_t j = 0; j < n; j += kPackedColumns, block += block_elements) {
      for (int64_t i = at; i < rows_end; i += kPair) {
        const T* const first = b + i * n + j;
        PackRowPair(std::min(kPackedColumns, n - j), first, i + 1 < k ? first + n : nullptr,
                    block + i * kPackedColumns);
      }
    }
  }
}

inline constexpr int64_t kSquare = 16;  // 16 columns by 16 pairs of rows go through 16 registers

#if HWY_TARGET <= HWY_AVX3
// 16 pairs of rows of one column.
HWY_INLINE PairVector LoadPairs(const Bf16* p) {
  return hn::LoadU(PairTag(), reinterpret_cast<const uint32_t*>(p));
}
HWY_INLINE PairVector LoadPairs(const float* p) {
  const hn::Repartition<uint16_t, FloatTag> d;
  const auto low = hn::BitCast(d, RoundUpperHalf(hn::LoadU(FloatTag(), p)));
  const auto high = hn::BitCast(d, RoundUpperHalf(hn::LoadU(FloatTag(), p + FloatLanes())));
  return hn::BitCast(PairTag(), hn::ConcatOdd(d, high, low));
}

// x[4 g + r] holds row r of group g. Transposes the 4 x 4 lanes of each 128-bit block within a
// group.
HWY_INLINE void TransposeInBlocks(PairVector* x) {
  const PairTag d;
  const hn::Repartition<uint64_t, PairTag> d64;
  const auto a = hn::BitCast(d64, hn::InterleaveLower(d, x[0], x[1]));
  const auto b = hn::BitCast(d64, hn::InterleaveUpper(d, x[0], x[1]));
  const auto c = hn::BitCast(d64, hn::InterleaveLower(d, x[2], x[3]));
  const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, x[2], x[3]));
  x[0] = hn::BitCast(d, hn::InterleaveLower(d64, a, c));
  x[1] = hn::BitCast(d, hn::InterleaveUpper(d64, a, c));
  x[2] = hn::BitCast(d, hn::InterleaveLower(d64, b, e));
  x[3] = hn::BitCast(d, hn::InterleaveUpper(d64, b, e));
}

// Calls store(i, lanes i of x[0 ... 15]) for each i.
template <typename Store>
HWY_INLINE void TransposeSquare(PairVector* x, const Store& store) {
  const PairTag d;
  for (int64_t group = 0; group < kSquare; group += 4) TransposeInBlocks(x + group);
  // Now block b of x[4 g + r] is lane 4 b + r of what was x[4 g ... 4 g + 3].
  for (int64_t r = 0; r < 4; ++r) {
    const auto even01 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[4 + r]), x[r]);
    const auto odd01 = hn::OddEvenBlocks(x[4 + r], hn::SwapAdjacentBlocks(x[r]));
    const auto even23 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[12 + r]), x[8 + r]);
    const auto odd23 = hn::OddEvenBlocks(x[12 + r], hn::SwapAdjacentBlocks(x[8 + r]));
    store(r, hn::ConcatLowerLower(d, even23, even01));
    store(4 + r, hn::ConcatLowerLower(d, odd23, odd01));
    store(8 + r, hn::ConcatUpperUpper(d, even23, even01));
    store(12 + r, hn::ConcatUpperUpper(d, odd23, odd01));
  }
}

// Packs 16 columns of B, `stride` elements apart, of 32 rows, into the 16 row pairs of a block.
template <typename T>
HWY_INLINE void PackSquare(const T* HWY_RESTRICT columns, int64_t stride, Bf16* HWY_RESTRICT to) {
  PairVector x[kSquare];
  for (int64_t c = 0; c < kSquare; ++c) x[c] = LoadPairs(columns + c * stride);
  TransposeSquare(x, [&](int64_t pair, PairVector v) HWY_ATTR {
    hn::StoreU(v, PairTag(), reinterpret_cast<uint32_t*>(to + pair * kPair * kPackedColumns));
  });
}

// Transposes the corner of A, `rows` by `columns`, at most 32 by 32, to rows `to_stride` apart;
// pads an odd number of rows with a zero.
HWY_INLINE void TransposeCorner(int64_t rows, int64_t columns, const Bf16* HWY_RESTRICT a,
                                int64_t stride, Bf16* HWY_RESTRICT to, int64_t to_stride) {
  const hn::Repartition<uint16_t, PairTag> d16;
  const PairTag d;
  const auto column_mask = hn::FirstN(d16, static_cast<size_t>(columns));
  const auto load = [&](int64_t row) HWY_ATTR {
    if (row >= rows) return hn::Zero(d16);
    const auto* const p = reinterpret_cast<const uint16_t*>(a + row * stride);
    return columns == kPackedRows ? hn::LoadU(d16, p) : hn::MaskedLoad(column_mask, d16, p);
  };
  const auto pairs = (rows + 1) / kPair;
  const auto pair_mask = hn::FirstN(d, static_cast<size_t>(pairs));
  const auto store = [&](int64_t column, PairVector v) HWY_ATTR {
    if (column >= columns) return;
    auto* const p = reinterpret_cast<uint32_t*>(to + column * to_stride);
    if (pairs == kSquare) {
      hn::StoreU(v, d, p);
    } else {
      hn::BlendedStore(v, pair_mask, d, p);
    }
  };
  // Transposes pairs of columns 8 b ... 8 b + 3 in block b, then the other columns. Two passes,
  // because there are only 32 registers.
  PairVector x[kSquare];
  for (int64_t i = 0; i < kSquare; ++i) {
    x[i] = hn::BitCast(d, hn::InterleaveLower(d16, load(kPair * i), load(kPair * i + 1)));
  }
  TransposeSquare(x, [&](int64_t i, PairVector v) HWY_ATTR { store(i / 4 * 8 + i % 4, v); });
  for (int64_t i = 0; i < kSquare; ++i) {
    x[i] = hn::BitCast(d, hn::InterleaveUpper(d16, load(kPair * i), load(kPair * i + 1)));
  }
  TransposeSquare(x, [&](int64_t i, PairVector v) HWY_ATTR { store(i / 4 * 8 + 4 + i % 4, v); });
}
inline constexpr bool kHasSquares = true;
#else
// Machines without bf16 instructions do not pack.
inline constexpr bool kHasSquares = false;
template <typename T>
void PackSquare(const T* /*columns*/, int64_t /*stride*/, Bf16* /*to*/) {}

void TransposeCorner(int64_t rows, int64_t columns, const Bf16* a, int64_t stride, Bf16* to,
                     int64_t to_stride) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < RoundUp(rows, kPair); ++i) {
      to[j * to_stride + i] = i < rows ? a[i * stride + j] : Bf16{};
    }
  }
}
#endif

template <typename T>
void TransposeCorners(int64_t k, int64_t m, int64_t stride, const T* a, T* transposed) {
  const int64_t to_stride = TransposedStride(k);
  for (int64_t i = 0; i < k; i += kPackedRows) {
    const int64_t rows = std::min(kPackedRows, k - i);
    const int64_t next_rows = std::min(kPackedRows, k - i - rows);
    for (int64_t j = 0; j < m; j += kPackedRows) {
      // Prefetched: with short pieces of many rows the hardware does not predict the next ones.
      const T* const next = a + (i + rows) * stride + j;
      for (int64_t r = 0; r < next_rows; ++r) hwy::Prefetch(next + r * stride);
      TransposeCorner(rows, std::min(kPackedRows, m - j), a + i * stride + j, stride,
                      transposed + j * to_stride + i, to_stride);
    }
  }
}

// Packs columns [begin, end) of B, which is stored as its transpose [n][k].
template <typename T>
void PackColumns(int64_t begin, int64_t end, int64_t k, int64_t /*n*/, const T* b, Bf16* packed) {
  const int64_t rows = RoundUp(k, kPackedRows);
  for (int64_t at = begin; at < end;) {
    const int64_t in_block = at % kPackedColumns;
    Bf16* const to = packed + (at - in_block) * rows + in_block * kPair;
    const T* const from = b + at * k;
    const int64_t columns = std::min(kSquare, end - at);
    int64_t i = 0;
    for (; kHasSquares && columns == kSquare && i + kPackedRows <= k; i += kPackedRows) {
      PackSquare(from + i, k, to + i * kPackedColumns);
    }
    for (; i < k; i += kPackedRows) {
      for (int64_t c = 0; c < columns; ++c) {
        PackColumn(std::min(kPackedRows, k - i), from + c * k + i,
                   to + i * kPackedColumns + c * kPair);
      }
    }
    at += columns;
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

size_t PackedBytes(int64_t k, int64_t n) {
  return static_cast<size_t>(RoundUp(k, kPackedRows) * RoundUp(n, kPackedColumns)) * sizeof(Bf16);
}

int64_t PackParts(Transpose tb, int64_t k, int64_t n) {
  const int64_t part = PartLines(tb, k, n);
  return RoundUp(tb == Transpose::kYes ? n : k, part) / part;
}

template <typename T>
void PackPart(int64_t part, Transpose tb, int64_t k, int64_t n, const T* b, Bf16* packed) {
  const int64_t lines = PartLines(tb, k, n);
  const int64_t begin = part * lines;
  if (tb == Transpose::kYes) {
    TUG_DISPATCH(PackColumns, T)(begin, std::min(begin + lines, n), k, n, b, packed);
  } else {
    TUG_DISPATCH(PackRows, T)(begin, std::min(begin + lines, k), k, n, b, packed);
  }
}

void ZeroPadding(int64_t k, int64_t n, Bf16* packed) {
  const int64_t block = RoundUp(k, kPackedRows) * kPackedColumns;
  const int64_t end = RoundUp(n, kPackedColumns) / kPackedColumns * block;
  const int64_t whole_columns = n / kPackedColumns * block;
  const int64_t whole_rows = k / kPackedRows * kPackedRows * kPackedColumns;
  for (int64_t at = 0; at < whole_columns; at += block) {
    std::fill(packed + at + whole_rows, packed + at + block, Bf16{});
  }
  std::fill(packed + whole_columns, packed + end, Bf16{});
}

void TransposeBf16(int64_t k, int64_t m, int64_t stride, const Bf16* a, Bf16* transposed) {
  TUG_DISPATCH(TransposeCorners, Bf16)(k, m, stride, a, transposed);
}

template void PackPart(int64_t, Transpose, int64_t, int64_t, const float*, Bf16*);
template void PackPart(int64_t, Transpose, int64_t, int64_t, const Bf16*, Bf16*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
