// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_TOOLKIT_LINEAR_CUDA_H_
#define TUG_KERNELS_CUDA_TOOLKIT_LINEAR_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"
#include "kernels/linear.h"

namespace tug::kernels::cuda {

// The products of kernels/linear.h on the GPU. x, y and their gradients are of type T, float or
// Bf16; all matrices are in device memory. Sums are FP32; the same bits in every run (with the
// conditions of MatMulHandle). They return once the work is queued. Errors: those of MatMul.
//
// Fastest if `in`, `out` and strides are multiples of 8: give rows of logits such a stride,
// whatever the vocabulary. For the gradient of a bias see BiasGradient of kernels/cuda/bias_cuda.h.

// A weight matrix of the caller, [in][out] or [out][in] in T.
template <typename T>
struct LinearWeights {
  int64_t in = 0;
  int64_t out = 0;
  WeightOrder order = WeightOrder::kInOut;
  const T* data = nullptr;
};

// B = float, or Bf16 if Y is Bf16.
//
// Y = Bf16: a float bias is rounded to Bf16 first, or else the product is. So the result differs
// from a single rounding of the sum by at most half a unit of Bf16's last place plus half a unit of
// the bias or of the product. A bias in Y that is 16-byte aligned is used in place; any other one
// costs a small kernel per call: cast biases to Bf16 when they change.
template <typename T, typename Y, typename B>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w,
                           const LinearForwardArgs<T, Y, B>& args, const Stream& stream);

// GELU of Bf16 is computed in the same kernel (from pre before rounding) if cuBLASLt supports it;
// otherwise a second kernel applies the activation. `bias` as for LinearForward.
template <typename T, typename B>
absl::Status LinearActivationForward(MatMulHandle& handle, const LinearWeights<T>& w,
                                     const LinearActivationForwardArgs<T, B>& args,
                                     const Stream& stream);

template <typename T>
absl::Status LinearInputGradient(MatMulHandle& handle, const LinearWeights<T>& w,
                                 const LinearInputGradientArgs<T>& args, const Stream& stream);

template <typename T>
absl::Status LinearWeightGradient(MatMulHandle& handle, const LinearWeightGradientArgs<T>& args,
                                  const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_TOOLKIT_LINEAR_CUDA_H_
