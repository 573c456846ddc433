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

// y = x W + bias.   x [rows][in]; bias [out] or null; y [rows][y_stride], of which `out` columns
// are written, y_stride >= out; Y = T, or float for T = Bf16 (logits). B = float, or Bf16 where Y
// is.
//
// Y = Bf16: a bias of floats is rounded to Bf16 first, or else the product is, so the result is
// within half a unit of Bf16's last place of what the rounding of the sum alone would give, and
// half of one of the bias or of the product. A bias in Y at a boundary of 16 bytes is taken where
// it lies; one elsewhere, or to be rounded, costs a small kernel each time: cast biases to Bf16
// when they change.
template <typename T, typename B, typename Y>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                           const T* x, const B* bias, Y* y, int64_t y_stride, const Stream& stream);

// The same with y [rows][out].
template <typename T, typename B, typename Y>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                           const T* x, const B* bias, Y* y, const Stream& stream) {
  return LinearForward(handle, w, rows, x, bias, y, w.out, stream);
}

// pre = x W + bias;  y = activation(pre), in the same kernel for GELU of Bf16 where cuBLASLt has
// that (from pre before it is rounded), else in a second one.
//   pre, y [rows][out]; bias as above
template <typename T, typename B>
absl::Status LinearActivationForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                                     const T* x, const B* bias, Activation activation, T* pre, T* y,
                                     const Stream& stream);

// dx = dy W^T, or with `accumulate` dx += dy W^T.   dy [rows][dy_stride], of which `out` columns
// count, dy_stride >= out; dx [rows][in]
template <typename T>
absl::Status LinearInputGradient(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                                 const T* dy, int64_t dy_stride, bool accumulate, T* dx,
                                 const Stream& stream);

// dw = x^T dy in the order of W, or with `accumulate` dw += x^T dy.   x [rows][in]; dy
// [rows][dy_stride], as above; dw [in][out] or [out][in], FP32.
template <typename T>
absl::Status LinearWeightGradient(MatMulHandle& handle, WeightOrder order, int64_t in, int64_t out,
                                  int64_t rows, const T* x, const T* dy, int64_t dy_stride,
                                  bool accumulate, float* dw, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_LINEAR_CUDA_H_
