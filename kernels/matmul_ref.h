#ifndef TUG_KERNELS_MATMUL_REF_H_
#define TUG_KERNELS_MATMUL_REF_H_

#include <cstdint>

#include "kernels/matmul.h"

namespace tug::kernels {

// MatMulInTask of kernels/matmul.h, in the precision of T.
template <typename T>
void MatMulRef(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
               const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = beta == T(0) ? T(0) : c[i * ldc + j];
      for (int64_t l = 0; l < k; ++l) {
        sum += (ta == Transpose::kYes ? a[l * lda + i] : a[i * lda + l]) *
               (tb == Transpose::kYes ? b[j * ldb + l] : b[l * ldb + j]);
      }
      c[i * ldc + j] = sum;
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_REF_H_
