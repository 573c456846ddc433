// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_MATMUL_REF_H_
#define TUG_KERNELS_REFERENCE_MATMUL_REF_H_

#include <cstdint>

#include "kernels/matmul.h"

namespace tug::kernels {

// MatMulInTask of kernels/matmul.h, in the precision of T.
template <typename T>
void MatMulRef(const MatMulArgs<T>& args) {
  const auto& [m, n, k, a, b, c, ldc, accumulate] = args;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = accumulate ? c[i * ldc + j] : T(0);
      for (int64_t l = 0; l < k; ++l) {
        sum += a.data[a.op == Transpose::kYes ? l * a.stride + i : i * a.stride + l] *
               b.data[b.op == Transpose::kYes ? j * b.stride + l : l * b.stride + j];
      }
      c[i * ldc + j] = sum;
    }
  }
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_MATMUL_REF_H_
