// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_INL_H_
#define TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_INL_H_

// Shared by both implementations of kernels/cuda/toolkit/matmul_cuda.h: the products that are never
// fused, and the instantiated types.

#include <type_traits>

#include "kernels/cuda/toolkit/matmul_cuda.h"

namespace tug::kernels::cuda {

template <typename T, typename C>
absl::Status CheckFusible(const MatMulArgs<T, C>& args, const Epilogue<C>& epilogue) {
  const bool gelu = epilogue.pre_gelu != nullptr;
  // The precision of tanh in cuBLASLt's GELU is not documented. The hardware's, with an error of
  // 2^-11, is sufficient only for results rounded to bf16.
  const bool exact = !gelu || std::is_same_v<C, Bf16>;
  if (args.k > 0 && exact && AtVectors(epilogue.bias, epilogue.pre_gelu) &&
      (!gelu || (args.ldc % 8 == 0 && AtVectors(args.c)))) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError("GPU: this shape or alignment cannot be fused");
}

}  // namespace tug::kernels::cuda

#define TUG_INSTANTIATE_MATMUL_OF(T, C)                                                         \
  template absl::Status MatMul(MatMulHandle&, const MatMulArgs<T, C>&, const Stream&);          \
  template absl::Status FusedMatMul(MatMulHandle&, const MatMulArgs<T, C>&, const Epilogue<C>&, \
                                    const Stream&);
#define TUG_INSTANTIATE_MATMUL            \
  TUG_INSTANTIATE_MATMUL_OF(float, float) \
  TUG_INSTANTIATE_MATMUL_OF(Bf16, Bf16)   \
  TUG_INSTANTIATE_MATMUL_OF(Bf16, float)

#endif  // TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_INL_H_
