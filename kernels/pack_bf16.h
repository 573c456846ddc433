#ifndef TUG_KERNELS_PACK_BF16_H_
#define TUG_KERNELS_PACK_BF16_H_

#include <cstddef>
#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/matmul.h"

namespace tug::kernels {

// bf16 matrices B [k][n] as the bf16 instructions want to read them: blocks of 64 columns one after
// the other; in a block pairs of rows, of a pair the two elements of each column side by side;
// zeros up to whole blocks and to 32 rows. oneDNN calls it BA16a64b2a, and chooses it with
// avx512_bf16 and with AMX when it is left the choice. Element (i, j) lies at
//   (j / 64) * (rows * 64) + (i / 2) * 128 + (j % 64) * 2 + i % 2,   rows = k rounded up to 32.
// So the columns from a multiple of 64 on are a packed matrix too.
inline constexpr int64_t kPackedColumns = 64;
inline constexpr int64_t kPackedRows = 32;

// Bytes of a packed matrix.
size_t PackedBytes(int64_t k, int64_t n);

// Packing is cut into parts, for tasks: 0 ... PackParts() - 1, each about 100 KB. T is Bf16, or
// float: rounded to nearest even.
//   b       [k][n], or with kYes its transpose [n][k]
//   packed  PackedBytes(k, n), all zeros, or packed before from a matrix of this size; aligned to
//   64
// Thread-safe.
int64_t PackParts(Transpose tb, int64_t k, int64_t n);
template <typename T>
void PackPart(int64_t part, Transpose tb, int64_t k, int64_t n, const T* b, Bf16* packed);

// Sets what PackPart leaves alone to zeros, for memory that was something else.
void ZeroPadding(int64_t k, int64_t n, Bf16* packed);

// A bf16 matrix A transposed: what is multiplied by a packed matrix of k rows. An odd k gets a zero
// more, so that each row of the result is of whole pairs.
//   a           [k][stride], its first m columns
//   transposed  [m][TransposedStride(k)]
// Thread-safe.
inline int64_t TransposedStride(int64_t k) { return k + k % 2; }
void TransposeBf16(int64_t k, int64_t m, int64_t stride, const Bf16* a, Bf16* transposed);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_PACK_BF16_H_
