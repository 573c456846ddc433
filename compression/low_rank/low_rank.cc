// SPDX-License-Identifier: Apache-2.0
#include "compression/low_rank/low_rank.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/low_rank/low_rank.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
//
#include "compression/dense/groups-inl.h"
#include "compression/dense/unaligned.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

constexpr int64_t kPartialSums = 16;
constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
constexpr int64_t kVectors = kPartialSums / kLanes;  // vectors of partial sums
static_assert(kVectors * kLanes == kPartialSums);
// Factors that are summed at once, in registers.
constexpr int64_t kTogether = 4;
// Elements of M that fit in the nearest cache.
constexpr int64_t kNear = 4096;

int32_t LargestMagnitudeBits(const float* x, int64_t n) { return LargestBits(x, n); }

int32_t AddAndLargestBits(const float* x, float* sum, int64_t n) {
  auto largest = hn::Zero(IntTag());
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto added = hn::Add(LoadUpTo(sum + i, n - i), LoadUpTo(x + i, n - i));
    StoreUpTo(added, sum + i, n - i);
    largest = LargestMagnitude(largest, added);
  }
  return hn::GetLane(hn::MaxOfLanes(IntTag(), largest));
}

HWY_INLINE float FoldPartialSums(const float* s) {
  float fours[4];
  for (int i = 0; i < 4; ++i) fours[i] = (s[i] + s[i + 4]) + (s[i + 8] + s[i + 12]);
  return (fours[0] + fours[1]) + (fours[2] + fours[3]);
}

// One row of M, scaled, times columns [0, kCount) of Q, into p[0], p[rows], ...
template <int64_t kCount>
HWY_INLINE void RowTimes(const float* row, FloatVector scale, int64_t n, const float* q,
                         int64_t columns, float* p, int64_t rows) {
  const FloatTag d;
  FloatVector sums[kCount][kVectors];
  for (auto& of_factor : sums) {
    for (auto& sum : of_factor) sum = hn::Zero(d);
  }
  int64_t at = 0;
  for (; at + kPartialSums <= n; at += kPartialSums) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t i = at + v * kLanes;
      const auto m = hn::Mul(hn::LoadU(d, row + i), scale);
      for (int64_t k = 0; k < kCount; ++k) {
        sums[k][v] = hn::Add(sums[k][v], hn::Mul(m, hn::LoadU(d, q + k * columns + i)));
      }
    }
  }
  for (int64_t v = 0; v < kVectors && at + v * kLanes < n; ++v) {
    const int64_t i = at + v * kLanes;
    const auto m = hn::Mul(LoadUpTo(row + i, n - i), scale);
    for (int64_t k = 0; k < kCount; ++k) {
      sums[k][v] = hn::Add(sums[k][v], hn::Mul(m, LoadUpTo(q + k * columns + i, n - i)));
    }
  }
  for (int64_t k = 0; k < kCount; ++k) {
    HWY_ALIGN float partial[kPartialSums];
    for (int64_t v = 0; v < kVectors; ++v) hn::Store(sums[k][v], d, partial + v * kLanes);
    p[k * rows] = FoldPartialSums(partial);
  }
}

float Dot(const float* a, const float* b, int64_t n) {
  float dot;
  RowTimes<1>(a, hn::Set(FloatTag(), 1.0f), n, b, 0, &dot, 0);
  return dot;
}

template <int64_t kCount>
void TimesSome(const MatrixShape& shape, const float* m, float scale, const float* q, float* p) {
  const auto scales = hn::Set(FloatTag(), scale);
  const int64_t rows = shape.rows();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * shape.columns;
    const int64_t n = std::min(shape.columns, shape.elements - begin);
    RowTimes<kCount>(m + begin, scales, n, q, shape.columns, p + row, rows);
  }
}

// Adds rows [first, first + count) of M, scaled and times their elements of P, to columns [0,
// kCount) of Q.
template <int64_t kCount>
HWY_INLINE void AddTransposedRows(const MatrixShape& shape, const float* m, FloatVector scale,
                                  int64_t first, int64_t count, const float* p, float* q) {
  const FloatTag d;
  const int64_t rows = shape.rows();
  const int64_t columns = shape.columns;
  for (int64_t c = 0; c < columns; c += kLanes) {
    FloatVector sums[kCount];
    for (int64_t k = 0; k < kCount; ++k) sums[k] = LoadUpTo(q + k * columns + c, columns - c);
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t at = row * columns + c;
      const int64_t left = std::min(columns - c, shape.elements - at);
      if (left <= 0) break;  // beyond the end of the last row
      const auto scaled = hn::Mul(LoadUpTo(m + at, left), scale);
      for (int64_t k = 0; k < kCount; ++k) {
        sums[k] = hn::Add(sums[k], hn::Mul(scaled, hn::Set(d, p[k * rows + row])));
      }
    }
    for (int64_t k = 0; k < kCount; ++k) StoreUpTo(sums[k], q + k * columns + c, columns - c);
  }
}

template <int64_t kCount>
void TransposedTimesSome(const MatrixShape& shape, const float* m, float scale, const float* p,
                         float* q) {
  std::fill_n(q, kCount * shape.columns, 0.0f);
  const int64_t rows = shape.rows();
  const int64_t together = std::max<int64_t>(kNear / shape.columns, 1);
  for (int64_t row = 0; row < rows; row += together) {
    AddTransposedRows<kCount>(shape, m, hn::Set(FloatTag(), scale), row,
                              std::min(together, rows - row), p, q);
  }
}

void TimesFactor(const MatrixShape& shape, const float* m, float scale, const float* q,
                 int64_t rank, float* p) {
  for (; rank >= kTogether; rank -= kTogether) {
    TimesSome<kTogether>(shape, m, scale, q, p);
    q += kTogether * shape.columns;
    p += kTogether * shape.rows();
  }
  if (rank == 3) TimesSome<3>(shape, m, scale, q, p);
  if (rank == 2) TimesSome<2>(shape, m, scale, q, p);
  if (rank == 1) TimesSome<1>(shape, m, scale, q, p);
}

void TransposedTimesFactor(const MatrixShape& shape, const float* m, float scale, const float* p,
                           int64_t rank, float* q) {
  for (; rank >= kTogether; rank -= kTogether) {
    TransposedTimesSome<kTogether>(shape, m, scale, p, q);
    p += kTogether * shape.rows();
    q += kTogether * shape.columns;
  }
  if (rank == 3) TransposedTimesSome<3>(shape, m, scale, p, q);
  if (rank == 2) TransposedTimesSome<2>(shape, m, scale, p, q);
  if (rank == 1) TransposedTimesSome<1>(shape, m, scale, p, q);
}

// y -= factor * x.
void SubtractMultiple(float factor, const float* x, float* y, int64_t n) {
  const auto factors = hn::Set(FloatTag(), factor);
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto product = hn::Mul(factors, LoadUpTo(x + i, n - i));
    StoreUpTo(hn::Sub(LoadUpTo(y + i, n - i), product), y + i, n - i);
  }
}

// Received factors may be unaligned.
HWY_INLINE FloatVector SetFrom(const float* at) {
  return hn::Set(FloatTag(), LoadOnce<float>(reinterpret_cast<const std::byte*>(at)));
}

// Expands kRows whole rows, or part of one, of P Q^T. Updates `largest` with the bits of their
// largest magnitude.
template <DecodeTo kTo, int64_t kRows>
HWY_INLINE void ExpandRows(const MatrixShape& shape, int64_t n, const float* p, const float* q,
                           int64_t rank, float* x, IntVector& largest) {
  const int64_t columns = shape.columns, rows = shape.rows();
  for (int64_t c = 0; c < n; c += kLanes) {
    FloatVector sums[kRows];
    const auto first = LoadUpTo(q + c, n - c);
    for (int64_t r = 0; r < kRows; ++r) sums[r] = hn::Mul(SetFrom(p + r), first);
    for (int64_t k = 1; k < rank; ++k) {
      const auto next = LoadUpTo(q + k * columns + c, n - c);
      for (int64_t r = 0; r < kRows; ++r) {
        sums[r] = hn::Add(sums[r], hn::Mul(SetFrom(p + k * rows + r), next));
      }
    }
    for (int64_t r = 0; r < kRows; ++r) {
      float* const to = x + r * columns + c;
      auto placed = sums[r];
      largest = LargestMagnitude(largest, placed);
      if constexpr (kTo == DecodeTo::kAdd) placed = hn::Add(LoadUpTo(to, n - c), placed);
      if constexpr (kTo == DecodeTo::kSubtract) placed = hn::Sub(LoadUpTo(to, n - c), placed);
      StoreUpTo(placed, to, n - c);
    }
  }
}

template <DecodeTo kTo>
HWY_INLINE bool ExpandTo(const MatrixShape& shape, const float* p, const float* q, int64_t rank,
                         float* x) {
  constexpr int64_t kRows = 4;
  const int64_t columns = shape.columns;
  const int64_t rows = shape.rows();
  auto largest = hn::Zero(IntTag());
  int64_t row = 0;
  for (; (row + kRows) * columns <= shape.elements; row += kRows) {
    ExpandRows<kTo, kRows>(shape, columns, p + row, q, rank, x + row * columns, largest);
  }
  for (; row < rows; ++row) {
    const int64_t n = std::min(columns, shape.elements - row * columns);
    ExpandRows<kTo, 1>(shape, n, p + row, q, rank, x + row * columns, largest);
  }
  return IsFinite(largest);
}

bool ExpandFactors(const MatrixShape& shape, const float* p, const float* q, int64_t rank,
                   DecodeTo to, float* elements) {
  switch (to) {
    case DecodeTo::kStore:
      return ExpandTo<DecodeTo::kStore>(shape, p, q, rank, elements);
    case DecodeTo::kAdd:
      return ExpandTo<DecodeTo::kAdd>(shape, p, q, rank, elements);
    case DecodeTo::kSubtract:
      return ExpandTo<DecodeTo::kSubtract>(shape, p, q, rank, elements);
  }
  return false;
}

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {
HWY_EXPORT(LargestMagnitudeBits);
HWY_EXPORT(AddAndLargestBits);
HWY_EXPORT(TimesFactor);
HWY_EXPORT(TransposedTimesFactor);
HWY_EXPORT(Dot);
HWY_EXPORT(SubtractMultiple);
HWY_EXPORT(ExpandFactors);

int32_t LargestMagnitudeBits(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestMagnitudeBits)(x, n);
}

int32_t AddAndLargestBits(const float* x, float* sum, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(AddAndLargestBits)(x, sum, n);
}

void TimesFactor(const MatrixShape& shape, const float* m, float scale, const float* q,
                 int64_t rank, float* p) {
  HWY_DYNAMIC_DISPATCH(TimesFactor)(shape, m, scale, q, rank, p);
}

void TransposedTimesFactor(const MatrixShape& shape, const float* m, float scale, const float* p,
                           int64_t rank, float* q) {
  HWY_DYNAMIC_DISPATCH(TransposedTimesFactor)(shape, m, scale, p, rank, q);
}

float Dot(const float* a, const float* b, int64_t n) { return HWY_DYNAMIC_DISPATCH(Dot)(a, b, n); }

void Orthonormalise(int64_t rows, int64_t rank, float* p) {
  constexpr float kMinSquares = 1e-24f;
  constexpr float kMinRemainder = 1e-12f;  // of the squares: less is rounding error
  for (int64_t k = 0; k < rank; ++k) {
    float* const column = p + k * rows;
    const float squares = Dot(column, column, rows);
    const auto subtract_others = [&] {
      for (const float* other = p; other != column; other += rows) {
        HWY_DYNAMIC_DISPATCH(SubtractMultiple)(Dot(other, column, rows), other, column, rows);
      }
      return Dot(column, column, rows);
    };
    const float left = squares >= kMinSquares ? subtract_others() : 0.0f;
    const float norm = left > kMinRemainder * squares ? std::sqrt(subtract_others()) : 0.0f;
    for (int64_t i = 0; i < rows; ++i) column[i] = norm > 0 ? column[i] / norm : 0.0f;
  }
}

bool ExpandFactors(const MatrixShape& shape, const float* p, const float* q, int64_t rank,
                   DecodeTo to, float* elements) {
  return HWY_DYNAMIC_DISPATCH(ExpandFactors)(shape, p, q, rank, to, elements);
}

}  // namespace tug
#endif  // HWY_ONCE
