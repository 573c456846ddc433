#ifndef TUG_KERNELS_MATMUL_H_
#define TUG_KERNELS_MATMUL_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

enum class Transpose : bool { kNo = false, kYes = true };

// C = op(A) op(B) + beta C, row-major FP32, through oneDNN.
//   op(A) is [m][k]: A is [m][lda] with lda >= k, or with ta == kYes [k][lda] with lda >= m.
//   op(B) is [k][n]: B is [k][ldb] with ldb >= n, or with tb == kYes [n][ldb] with ldb >= k.
//   C is [m][ldc] with ldc >= n; it must not overlap A or B.
// REQUIRES: beta is 0 (C is written, never read: it may hold NaN) or 1. m, n, k >= 0; k == 0 means
// a product of zeros.
//
// The three products of a layer y[rows][out] = x[rows][in] W[in][out]:
//   forward          MatMul(pool, kNo,  kNo,  rows, out, in,  x, in,  W, out, 0, y, out);
//   input gradient   MatMul(pool, kNo,  kYes, rows, in,  out, dy, out, W, out, 0, dx, in);
//   weight gradient  MatMul(pool, kYes, kNo,  in,   out, rows, x, in,  dy, out, 1, dW, out);
// (with W stored [out][in] as PyTorch does, forward is kNo, kYes and the input gradient kNo, kNo.)
//
// The work is cut over m and n into tiles that depend on the shape alone, never over k, so the bits
// do not depend on pool.threads(). They may depend on the instruction set, as oneDNN picks its
// kernels by it. Thread-safe for calls with different pools.
void MatMul(ThreadPool& pool, Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k,
            const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
            int64_t ldc);

// The same product on the calling thread alone, not cut: for kernels whose tasks multiply small
// matrices (attention). Thread-safe.
void MatMulInTask(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, const float* a,
                  int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// oneDNN starts OpenMP threads of its own unless the calling thread's setting says one: to be called
// before a task uses it.
void UseOneOpenMpThread();

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_H_
