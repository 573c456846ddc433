// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_LOW_RANK_LOW_RANK_H_
#define TUG_COMPRESSION_LOW_RANK_LOW_RANK_H_

// Products of a matrix M and thin factors P and Q, where P Q^T approximates M. Every element of a
// product has the same bits with every instruction set: sums along a row of M, and of squares, use
// 16 partial sums, with place i in sum i % 16; other sums go place by place; nothing is fused.

#include <cstddef>
#include <cstdint>

#include "compression/codec.h"

namespace tug {

// Elements in rows; the last row may be shorter, and counts as padded with zeros.
struct MatrixShape {
  int64_t elements;
  int64_t columns;

  int64_t rows() const { return (elements + columns - 1) / columns; }
};

// All functions are thread-safe. No alignment is needed; outputs do not overlap inputs. Factors are
// stored column by column: P is [rank][rows], Q [rank][columns].

// Bits of the largest magnitude: larger for infinities and NaNs than for finite numbers.
//   x [n].
int32_t LargestMagnitudeBits(const float* x, int64_t n);

// sum += x. Returns LargestMagnitudeBits of the sum.
//   x, sum [n].
int32_t AddAndLargestBits(const float* x, float* sum, int64_t n);

// P = (scale M) Q.
//   m [shape.elements], q [rank][columns], p [rank][rows].
void TimesFactor(const MatrixShape& shape, const float* m, float scale, const float* q,
                 int64_t rank, float* p);

// Q = (scale M)^T P.
//   m [shape.elements], p [rank][rows], q [rank][columns].
void TransposedTimesFactor(const MatrixShape& shape, const float* m, float scale, const float* p,
                           int64_t rank, float* q);

// The sum of a[i] b[i].
//   a, b [n].
float Dot(const float* a, const float* b, int64_t n);

// Makes the columns of P orthonormal by modified Gram-Schmidt, each column twice (twice is enough:
// Giraud et al. 2005). A column becomes 0 if its norm is below 1e-12, or if subtracting the earlier
// columns leaves at most 1e-6 of it.
//   p [rank][rows], finite.
void Orthonormalise(int64_t rows, int64_t rank, float* p);

// elements = P Q^T, or adds or subtracts it. False: one of its elements is not finite.
//   p [rank][rows], q [rank][columns], elements [shape.elements]. REQUIRES: rank >= 1.
bool ExpandFactors(const MatrixShape& shape, const float* p, const float* q, int64_t rank,
                   DecodeTo to, float* elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_LOW_RANK_LOW_RANK_H_
