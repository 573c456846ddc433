// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_MATMUL_H_
#define TUG_KERNELS_MATMUL_H_

#include <cstdint>

namespace tug::kernels {

enum class Transpose : bool { kNo = false, kYes = true };

// Matrix stored row by row.
template <typename T>
struct MatMulOperand {
  const T* data;
  int64_t stride;  // elements between the starts of adjacent rows
  Transpose op = Transpose::kNo;
};

template <typename T, typename C = T>
struct MatMulArgs {
  int64_t m, n, k;
  MatMulOperand<T> a;  // op(A) is [m][k]: A is [m][stride], or with op == kYes [k][stride]
  MatMulOperand<T> b;  // op(B) is [k][n]: B is [k][stride], or with op == kYes [n][stride]
  C* c;                // [m][ldc] with ldc >= n; must not overlap A or B
  int64_t ldc;
  bool accumulate = false;
};

// C = op(A) op(B), or with `accumulate` C += op(A) op(B), FP32, through oneDNN, on the calling
// thread alone: for kernels whose tasks multiply small matrices (attention) or tiles (linear.h).
// Without `accumulate` C is never read: it may hold NaN.
// REQUIRES: m, n, k >= 0; with k == 0 the product is zeros.
//
// Bits may depend on the instruction set: oneDNN selects its kernels by it. Thread-safe.
void MatMulInTask(const MatMulArgs<float>& args);

// Limits OpenMP on the calling thread to one thread; otherwise oneDNN starts OpenMP threads of its
// own. A task calls this before it uses oneDNN.
void UseOneOpenMpThread();

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_H_
