#ifndef TUG_KERNELS_MATMUL_H_
#define TUG_KERNELS_MATMUL_H_

#include <cstdint>

namespace tug::kernels {

enum class Transpose : bool { kNo = false, kYes = true };

// A matrix as it lies in memory, row by row.
template <typename T>
struct MatMulOperand {
  const T* data;
  int64_t stride;  // elements from one row to the next
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
// REQUIRES: m, n, k >= 0; k == 0 means a product of zeros.
//
// Bits may depend on the instruction set, as oneDNN picks its kernels by it. Thread-safe.
void MatMulInTask(const MatMulArgs<float>& args);

// oneDNN starts OpenMP threads of its own unless the calling thread's setting says one: to be
// called before a task uses it.
void UseOneOpenMpThread();

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_H_
