#ifndef TUG_KERNELS_MATMUL_CUDA_INL_H_
#define TUG_KERNELS_MATMUL_CUDA_INL_H_

// What both implementations of kernels/matmul_cuda.h have: which products are never fused, and for
// which types there are any.

#include <type_traits>

#include "kernels/matmul_cuda.h"

namespace tug::kernels::cuda {

template <typename C>
absl::Status CheckFusible(int64_t k, const Epilogue<C>& epilogue, const C* c, int64_t ldc) {
  const bool gelu = epilogue.pre_gelu != nullptr;
  // Nothing says how exact the tanh of cuBLASLt's GELU is: the hardware's, 2^-11 off, is exact
  // enough for what is rounded to bf16 alone.
  const bool exact = !gelu || std::is_same_v<C, Bf16>;
  if (k > 0 && exact && AtVectors(epilogue.bias, epilogue.pre_gelu) &&
      (!gelu || (ldc % 8 == 0 && AtVectors(c)))) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError("GPU: a shape or a boundary that cannot be fused");
}

}  // namespace tug::kernels::cuda

#define TUG_INSTANTIATE_MATMUL_OF(T, C)                                                        \
  template absl::Status MatMul(MatMulHandle&, Transpose, Transpose, int64_t, int64_t, int64_t, \
                               const T*, int64_t, const T*, int64_t, float, C*, int64_t,       \
                               const Stream&);                                                 \
  template absl::Status FusedMatMul(MatMulHandle&, Transpose, Transpose, int64_t, int64_t,     \
                                    int64_t, const T*, int64_t, const T*, int64_t,             \
                                    const Epilogue<C>&, C*, int64_t, const Stream&);
#define TUG_INSTANTIATE_MATMUL            \
  TUG_INSTANTIATE_MATMUL_OF(float, float) \
  TUG_INSTANTIATE_MATMUL_OF(Bf16, Bf16)   \
  TUG_INSTANTIATE_MATMUL_OF(Bf16, float)

#endif  // TUG_KERNELS_MATMUL_CUDA_INL_H_
