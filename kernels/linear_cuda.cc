#include "kernels/linear_cuda.h"

#include <type_traits>

#include "base/status_macros.h"
#include "kernels/activation_cuda.h"
#include "kernels/bf16_cast_cuda.h"
#include "kernels/linear_elements_cuda.h"

namespace tug::kernels::cuda {
namespace {

constexpr Transpose kNo = Transpose::kNo;
constexpr Transpose kYes = Transpose::kYes;

// The bias as a fused product of Y takes it: in Y, at a boundary of 16 bytes. Null where it does
// not fit the scratch.
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
template <typename T, typename Y>
absl::Status Forward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows, const T* x,
                     Y* y, int64_t y_stride, const Stream& stream) {
  const bool in_out = w.order == WeightOrder::kInOut;
  return MatMul(handle, kNo, in_out ? kNo : kYes, rows, w.out, w.in, x, w.in, w.data,
                in_out ? w.out : w.in, 0.0f, y, y_stride, stream);
}

// The same with bias and GELU in one kernel; UNIMPLEMENTED where there is none.
template <typename T, typename B, typename Y>
absl::Status FusedForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows, const T* x,
                          const B* bias, Y* pre_gelu, Y* y, int64_t y_stride,
                          const Stream& stream) {
  Epilogue<Y> epilogue{.pre_gelu = pre_gelu};
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(epilogue.bias, FusedBias<Y>(handle, w.out, bias, stream));
    if (epilogue.bias == nullptr) return absl::UnimplementedError("GPU: too long a bias to fuse");
  }
  const bool in_out = w.order == WeightOrder::kInOut;
  return FusedMatMul(handle, kNo, in_out ? kNo : kYes, rows, w.out, w.in, x, w.in, w.data,
                     in_out ? w.out : w.in, epilogue, y, y_stride, stream);
}

}  // namespace

template <typename T, typename B, typename Y>
absl::Status LinearForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                           const T* x, const B* bias, Y* y, int64_t y_stride,
                           const Stream& stream) {
  if (bias == nullptr) return Forward(handle, w, rows, x, y, y_stride, stream);
  const absl::Status fused =
      FusedForward(handle, w, rows, x, bias, static_cast<Y*>(nullptr), y, y_stride, stream);
  if (!absl::IsUnimplemented(fused)) return fused;
  RETURN_IF_ERROR(Forward(handle, w, rows, x, y, y_stride, stream));
  return AddBias(rows, w.out, bias, y, y_stride, stream);
}

template <typename T, typename B>
absl::Status LinearActivationForward(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                                     const T* x, const B* bias, Activation activation, T* pre, T* y,
                                     const Stream& stream) {
  if (activation == Activation::kGelu) {
    const absl::Status fused = FusedForward(handle, w, rows, x, bias, pre, y, w.out, stream);
    if (!absl::IsUnimplemented(fused)) return fused;
  }
  RETURN_IF_ERROR(LinearForward(handle, w, rows, x, bias, pre, stream));
  return BiasActivationForward<T>(activation, rows, w.out, /*bias=*/nullptr, pre, y, stream);
}

template <typename T>
absl::Status LinearInputGradient(MatMulHandle& handle, const LinearWeights<T>& w, int64_t rows,
                                 const T* dy, int64_t dy_stride, bool accumulate, T* dx,
                                 const Stream& stream) {
  const bool in_out = w.order == WeightOrder::kInOut;
  return MatMul(handle, kNo, in_out ? kYes : kNo, rows, w.in, w.out, dy, dy_stride, w.data,
                in_out ? w.out : w.in, accumulate ? 1.0f : 0.0f, dx, w.in, stream);
}

template <typename T>
absl::Status LinearWeightGradient(MatMulHandle& handle, WeightOrder order, int64_t in, int64_t out,
                                  int64_t rows, const T* x, const T* dy, int64_t dy_stride,
                                  bool accumulate, float* dw, const Stream& stream) {
  const float beta = accumulate ? 1.0f : 0.0f;
  if (order == WeightOrder::kInOut) {
    return MatMul(handle, kYes, kNo, in, out, rows, x, in, dy, dy_stride, beta, dw, out, stream);
  }
  return MatMul(handle, kYes, kNo, out, in, rows, dy, dy_stride, x, in, beta, dw, in, stream);
}

#define TUG_INSTANTIATE_FORWARD(T, B, Y)                                                         \
  template absl::Status LinearForward(MatMulHandle&, const LinearWeights<T>&, int64_t, const T*, \
                                      const B*, Y*, int64_t, const Stream&)
TUG_INSTANTIATE_FORWARD(float, float, float);
TUG_INSTANTIATE_FORWARD(Bf16, float, Bf16);
TUG_INSTANTIATE_FORWARD(Bf16, Bf16, Bf16);
TUG_INSTANTIATE_FORWARD(Bf16, float, float);
#undef TUG_INSTANTIATE_FORWARD

#define TUG_INSTANTIATE_ACTIVATION(T, B)                                                         \
  template absl::Status LinearActivationForward(MatMulHandle&, const LinearWeights<T>&, int64_t, \
                                                const T*, const B*, Activation, T*, T*,          \
                                                const Stream&)
TUG_INSTANTIATE_ACTIVATION(float, float);
TUG_INSTANTIATE_ACTIVATION(Bf16, float);
TUG_INSTANTIATE_ACTIVATION(Bf16, Bf16);
#undef TUG_INSTANTIATE_ACTIVATION

#define TUG_INSTANTIATE(T)                                                                       \
  template absl::Status LinearInputGradient(MatMulHandle&, const LinearWeights<T>&, int64_t,     \
                                            const T*, int64_t, bool, T*, const Stream&);         \
  template absl::Status LinearWeightGradient(MatMulHandle&, WeightOrder, int64_t, int64_t,       \
                                             int64_t, const T*, const T*, int64_t, bool, float*, \
                                             const Stream&)
TUG_INSTANTIATE(float);
TUG_INSTANTIATE(Bf16);
#undef TUG_INSTANTIATE

}  // namespace tug::kernels::cuda
