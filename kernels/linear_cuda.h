#ifndef TUG_KERNELS_LINEAR_CUDA_H_
#define TUG_KERNELS_LINEAR_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/linear.h"
#include "kernels/matmul_cuda.h"

namespace tug::kernels::cuda {

// The products of kernels/linear.h on the GPU, on x, y and their gradients of type T, float or
// Bf16; all matrices in device memory. Sums are FP32; the same bits at every run (MatMulHandle says
// which). They return when the work is queued. Errors: those of MatMul.
//
// `in`, `out` and strides that are multiples of 8 are fastest: so far apart may rows of logits lie,
// whatever the vocabulary. The gradient of a bias is BiasGradient's of kernels/bias_cuda.h.

// A weight matrix, [in][out] or [out][in] in T, which is the caller's.
template <typename T>
struct LinearWeights {
  int64_t in = 0;
  int64_t out = 0;
  WeightOrder order = WeightOrder::kInOut;
  const T* data = nullptr;
};

// B = float, or Bf16 where Y is.
//
// Y = Bf16: a bias of floats is rounded to Bf16 first, or else the product is, so the result is
// within half a unit of Bf16's last place of what the rounding of the sum alone would give, and
// half of one of the bias or of the product. A bias in Y at a boundary of 16 bytes is taken where
// it lies; one elsewhere, or to be rounded, costs a small kernel each time: cast biases to Bf16
// when they change.
template <typename T, typename Y, typename B>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w,
                           const LinearForwardArgs<T, Y, B>& args, const Stream& stream);

// In the same kernel for GELU of Bf16 where cuBLASLt has that (from pre before it is rounded), else
// in a second one. `bias` as above.
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

#endif  // TUG_KERNELS_LINEAR_CUDA_H_
