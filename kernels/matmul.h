#ifndef TUG_KERNELS_MATMUL_H_
#define TUG_KERNELS_MATMUL_H_

#include <cstdint>

namespace tug::kernels {

enum class Transpose : bool { kNo = false, kYes = true };

// C = op(A) op(B) + beta C, row-major FP32, through oneDNN, on the calling thread alone: for
// kernels whose tasks multiply small matrices (attention) or tiles (linear.h).
//   op(A) is [m][k]: A is [m][lda] with lda >= k, or with ta == kYes [k][lda] with lda >= m.
//   op(B) is [k][n]: B is [k][ldb] with ldb >= n, or with tb == kYes [n][ldb] with ldb >= k.
//   C is [m][ldc] with ldc >= n; it must not overlap A or B.
// REQUIRES: beta is 0 (C is written, never read: it may hold NaN) or 1. m, n, k >= 0; k == 0 means
// a product of zeros.
//
// Bits may depend on the instruction set, as oneDNN picks its kernels by it. Thread-safe.
void MatMulInTask(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, const float* a,
                  int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// oneDNN starts OpenMP threads of its own unless the calling thread's setting says one: to be
// called before a task uses it.
void UseOneOpenMpThread();

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_H_
