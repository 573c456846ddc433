// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_PACK_BF16_H_
#define TUG_KERNELS_CPU_LINEAR_PACK_BF16_H_

#include <cstddef>
#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/matmul.h"

namespace tug::kernels {

// bf16 matrices B [k][n] in the order that bf16 instructions read: blocks of 64 columns, one after
// the other; within a block, pairs of rows; within a pair, the two elements of each column side by
// side; zeros up to whole blocks and to 32 rows. This is oneDNN's BA16a64b2a, which it prefers with
// avx512_bf16 and with AMX. Element (i, j) is at
//   (j / 64) * (rows * 64) + (i / 2) * 128 + (j % 64) * 2 + i % 2,   rows = k rounded up to 32.
// So the columns from a multiple of 64 on are a packed matrix, too.
inline constexpr int64_t kPackedColumns = 64;
inline constexpr int64_t kPackedRows = 32;

// Size of a packed matrix in bytes.
size_t PackedBytes(int64_t k, int64_t n);

// Packs one part of B. Parts 0 ... PackParts() - 1 can be packed by different tasks; each is about
// 100 KB. T is Bf16, or float, which is rounded to nearest even.
//   b       [k][n], or with kYes its transpose [n][k]
//   packed  PackedBytes(k, n), 64-byte aligned; zeros, or packed before from a matrix of this size
// Thread-safe.
int64_t PackParts(Transpose tb, int64_t k, int64_t n);
template <typename T>
void PackPart(int64_t part, Transpose tb, int64_t k, int64_t n, const T* b, Bf16* packed);

// Zeroes the padding, which PackPart does not write. Needed for memory with other contents.
void ZeroPadding(int64_t k, int64_t n, Bf16* packed);

// Transposes a bf16 matrix A, to be multiplied by a packed matrix of k rows. If k is odd, a zero is
// added, so that each row of the result consists of pairs.
//   a           [k][stride], its first m columns
//   transposed  [m][TransposedStride(k)]
// Thread-safe.
inline int64_t TransposedStride(int64_t k) { return k + k % 2; }
void TransposeBf16(int64_t k, int64_t m, int64_t stride, const Bf16* a, Bf16* transposed);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_LINEAR_PACK_BF16_H_
