// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_SUM_H_
#define TUG_KERNELS_SUM_H_

#include <cstdint>
#include <span>

namespace tug::kernels {

// Operations of a server lane on gradients. One thread, no pool. All thread-safe.

// dst = src. Returns whether every element of src is finite (dst is written either way).
//   src, dst [n], not overlapping, no alignment needed (a message is read in place).
bool CopyAndCheck(const float* src, float* dst, int64_t n);

// acc += src. Returns whether every element of src is finite (acc is written either way).
//   src, acc [n], not overlapping, no alignment needed.
bool AddAndCheck(const float* src, float* acc, int64_t n);

// sum = a + b. Returns whether every element of b is finite (sum is written either way).
//   a, b, sum [n], not overlapping, no alignment needed.
bool SumAndCheck(const float* a, const float* b, float* sum, int64_t n);

// Whether every element is finite.
//   x [n], no alignment needed.
bool AllFinite(const float* x, int64_t n);

// Elements per chunk: a leaf of SumOfSquares' tree.
inline constexpr int64_t kSumChunk = 1024;

// The sum of x[i]^2 in FP64, by TreeFold over the sums of chunks of kSumChunk elements (the last
// may be shorter). For ranges that start at multiples of 2^k chunks and hold 2^k chunks each (the
// last may be shorter), TreeFold over the ranges' sums is therefore bit-equal to the sum over all
// of x: segments may be summed anywhere.
double SumOfSquares(const float* x, int64_t n);

// The sum of `leaves` by a fixed binary tree, (0+1)+(2+3)...; at a level of odd count the last
// value moves up unchanged. An empty span gives 0.
double TreeFold(std::span<const double> leaves);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_SUM_H_
