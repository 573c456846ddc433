// SPDX-License-Identifier: Apache-2.0
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/matmul.h"

// From libgomp, which Debian's oneDNN uses. Declared here because omp.h belongs to the compiler and
// clang has none.
extern "C" void omp_set_num_threads(int);

// Choice of the oneDNN call: GFLOP/s of one thread of an AMD EPYC (Zen 4, AVX-512), tiles of 128
// rows for the forward shapes (N, K) and the input gradients, 192 x 384 with K = 2048 for the
// weight gradients; oneDNN 2.6.3, OpenBLAS 0.3.21:
//                               dnnl_sgemm   matmul primitive   + packing B   OpenBLAS
//   NN 1152,384                    116.9          115.3            107.1        100.1
//   NN 384,1536                    116.7          114.6            110.4        102.2
//   NT 384,1536                    100.9          112.2            103.6         99.9
//   NT 1536,384                     97.9          112.1            104.5         99.7
//   TN 192 x 384                   115.2          105.8             91.9         97.8
//   attention: NT 64 x 256, K 64   105.2          104.8             97.5         89.6
// dnnl_sgemm is used, which needs neither descriptors nor a cache of primitives. linear.h, whose
// tiles are large and of few shapes, uses the primitive for NT (matmul_primitive.h).

namespace tug::kernels {

void UseOneOpenMpThread() {
  thread_local const bool done = [] {
    omp_set_num_threads(1);
    return true;
  }();
  (void)done;
}

void MatMulInTask(const MatMulArgs<float>& args) {
  const auto& [m, n, k, a, b, c, ldc, accumulate] = args;
  TUG_CHECK(m >= 0 && n >= 0 && k >= 0);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; !accumulate && i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
    return;
  }
  UseOneOpenMpThread();
  const auto op = [](Transpose t) { return t == Transpose::kYes ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(op(a.op), op(b.op), m, n, k, 1.0f, a.data, a.stride,
                                          b.data, b.stride, accumulate ? 1.0f : 0.0f, c, ldc);
  TUG_CHECK_EQ(status, dnnl_success) << "dnnl_sgemm m=" << m << " n=" << n << " k=" << k;
}

}  // namespace tug::kernels
