// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/toolkit/linear_cuda.h"

#include <type_traits>
#include <utility>

#include "base/status_macros.h"
#include "kernels/cuda/activation_cuda.h"
#include "kernels/cuda/bf16_cast_cuda.h"
#include "kernels/cuda/toolkit/linear_elements_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr Transpose kNo = Transpose::kNo;
constexpr Transpose kYes = Transpose::kYes;

// The bias as a fused product of Y needs it: in Y, 16-byte aligned. Null if it does not fit the
// scratch.
template <typename Y, typename B>
absl::StatusOr<const Y*> FusedBias(MatMulHandle& handle, int64_t out, const B* bias,
                                   const Stream& stream) {
  constexpr bool kAsItIs = std::is_same_v<Y, B>;
  if constexpr (kAsItIs) {
    if (AtVectors(bias)) return bias;
  }
  const auto bytes = static_cast<size_t>(out) * sizeof(Y);
  if (bytes > MatMulHandle::kBiasBytes) return nullptr;
  auto* const scratch = static_cast<Y*>(handle.bias_scratch());
  if constexpr (kAsItIs) {
    RETURN_IF_ERROR(CopyOnDeviceAsync(scratch, bias, bytes, stream));
  } else {
    RETURN_IF_ERROR(Bf16FromFloat(bias, scratch, out, stream));
  }
  return scratch;
}

// y = x W.
template <typename T, typename Y, typename B>
MatMulArgs<T, Y> ForwardProduct(const LinearWeights<T>& w, const LinearForwardArgs<T, Y, B>& a) {
  const bool in_out = w.order == WeightOrder::kInOut;
  return {.m = a.rows,
          .n = w.out,
          .k = w.in,
          .a = {a.x, w.in},
          .b = {w.data, in_out ? w.out : w.in, in_out ? kNo : kYes},
          .c = a.y,
          .ldc = a.y_stride};
}

// Forward product with bias and GELU in one kernel; UNIMPLEMENTED if there is none.
template <typename T, typename Y, typename B>
absl::Status FusedForward(MatMulHandle& handle, const LinearWeights<T>& w,
                          const LinearForwardArgs<T, Y, B>& a, Y* pre_gelu, const Stream& stream) {
  Epilogue<Y> epilogue{.pre_gelu = pre_gelu};
  if (a.bias != nullptr) {
    ASSIGN_OR_RETURN(epilogue.bias, FusedBias<Y>(handle, w.out, a.bias, stream));
    if (epilogue.bias == nullptr)
      return absl::UnimplementedError("GPU: the bias is too long to fuse");
  }
  return FusedMatMul(handle, ForwardProduct(w, a), epilogue, stream);
}

}  // namespace

template <typename T, typename Y, typename B>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w,
                           const LinearForwardArgs<T, Y, B>& a, const Stream& stream) {
  if (a.bias == nullptr) return MatMul(handle, ForwardProduct(w, a), stream);
  const absl::Status fused = FusedForward<T, Y, B>(handle, w, a, /*pre_gelu=*/nullptr, stream);
  if (!absl::IsUnimplemented(fused)) return fused;
  RETURN_IF_ERROR(MatMul(handle, ForwardProduct(w, a), stream));
  return AddBias(a.rows, w.out, a.bias, a.y, a.y_stride, stream);
}

template <typename T, typename B>
absl::Status LinearActivationForward(MatMulHandle& handle, const LinearWeights<T>& w,
                                     const LinearActivationForwardArgs<T, B>& a,
                                     const Stream& stream) {
  LinearForwardArgs<T, T, B> linear = {a.rows, a.x, a.bias, a.y, w.out};
  if (a.activation == Activation::kGelu) {
    const absl::Status fused = FusedForward(handle, w, linear, a.pre, stream);
    if (!absl::IsUnimplemented(fused)) return fused;
  }
  linear.y = a.pre;
  RETURN_IF_ERROR(LinearForward(handle, w, linear, stream));
  return BiasActivationForward<T>(a.activation, a.rows, w.out, /*bias=*/nullptr, a.pre, a.y,
                                  stream);
}

template <typename T>
absl::Status LinearInputGradient(MatMulHandle& handle, const LinearWeights<T>& w,
                                 const LinearInputGradientArgs<T>& a, const Stream& stream) {
  const bool in_out = w.order == WeightOrder::kInOut;
  return MatMul<T, T>(handle,
                      {.m = a.rows,
                       .n = w.in,
                       .k = w.out,
                       .a = {a.dy, a.dy_stride},
                       .b = {w.data, in_out ? w.out : w.in, in_out ? kYes : kNo},
                       .c = a.dx,
                       .ldc = w.in,
                       .accumulate = a.accumulate},
                      stream);
}

template <typename T>
absl::Status LinearWeightGradient(MatMulHandle& handle, const LinearWeightGradientArgs<T>& a,
                                  const Stream& stream) {
  // For kOutIn the gradient is dy^T x.
  const bool in_out = a.order == WeightOrder::kInOut;
  MatMulOperand<T> left = {a.x, a.in}, right = {a.dy, a.dy_stride};
  if (!in_out) std::swap(left, right);
  left.op = kYes;
  const int64_t n = in_out ? a.out : a.in;
  return MatMul<T, float>(handle,
                          {.m = in_out ? a.in : a.out,
                           .n = n,
                           .k = a.rows,
                           .a = left,
                           .b = right,
                           .c = a.dw,
                           .ldc = n,
                           .accumulate = a.accumulate},
                          stream);
}

#define TUG_INSTANTIATE_FORWARD(T, Y, B)                                      \
  template absl::Status LinearForward(MatMulHandle&, const LinearWeights<T>&, \
                                      const LinearForwardArgs<T, Y, B>&, const Stream&)
TUG_INSTANTIATE_FORWARD(float, float, float);
TUG_INSTANTIATE_FORWARD(Bf16, Bf16, float);
TUG_INSTANTIATE_FORWARD(Bf16, Bf16, Bf16);
TUG_INSTANTIATE_FORWARD(Bf16, float, float);
#undef TUG_INSTANTIATE_FORWARD

#define TUG_INSTANTIATE_ACTIVATION(T, B)                                                  \
  template absl::Status LinearActivationForward(MatMulHandle&, const LinearWeights<T>&,   \
                                                const LinearActivationForwardArgs<T, B>&, \
                                                const Stream&)
TUG_INSTANTIATE_ACTIVATION(float, float);
TUG_INSTANTIATE_ACTIVATION(Bf16, float);
TUG_INSTANTIATE_ACTIVATION(Bf16, Bf16);
#undef TUG_INSTANTIATE_ACTIVATION

#define TUG_INSTANTIATE(T)                                                                      \
  template absl::Status LinearInputGradient(MatMulHandle&, const LinearWeights<T>&,             \
                                            const LinearInputGradientArgs<T>&, const Stream&);  \
  template absl::Status LinearWeightGradient(MatMulHandle&, const LinearWeightGradientArgs<T>&, \
                                             const Stream&)
TUG_INSTANTIATE(float);
TUG_INSTANTIATE(Bf16);
#undef TUG_INSTANTIATE

}  // namespace tug::kernels::cuda
