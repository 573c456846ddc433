// The twins on the GPU at the shapes of a GPT of width 2,048 on 16 samples of 1,024 tokens: bytes
// of device memory a second beside those of a copy, products beside those of a large square matrix
// product, all in the same run.
#include "kernels/cuda_benchmark.h"

#if TUG_CUDA || TUG_CUDA_EMULATED
#include "base/status_macros.h"
#include "kernels/activation_cuda.h"
#include "kernels/adamw_cuda.h"
#include "kernels/add_cuda.h"
#include "kernels/bias_cuda.h"
#include "kernels/linear_cuda.h"
#include "kernels/matmul_cuda.h"
#endif

namespace tug::kernels::cuda {
namespace {

#if TUG_CUDA || TUG_CUDA_EMULATED

const int64_t kRows = CudaBenchmark::Size(16384, 16);
const int64_t kWidth = CudaBenchmark::Size(2048, 32);
const int64_t kInner = 4 * kWidth;
const int64_t kVocabulary = CudaBenchmark::Size(50304, 96);
const int64_t kParameters = CudaBenchmark::Size(64 << 20, 1 << 10);

absl::Status TimeCopy(CudaBenchmark& b) {
  const int64_t bytes = CudaBenchmark::Size(512 << 20, 1 << 10);
  ASSIGN_OR_RETURN(void* const from, b.Zeros(bytes));
  ASSIGN_OR_RETURN(void* const to, b.Zeros(bytes));
  return b.Bytes("copy", 2.0 * static_cast<double>(bytes), [&] {
    return CopyOnDeviceAsync(to, from, static_cast<size_t>(bytes), b.stream());
  });
}

absl::Status TimeElements(CudaBenchmark& b) {
  const auto n = static_cast<double>(kParameters);
  ASSIGN_OR_RETURN(float* const g, b.Floats(kParameters));
  ASSIGN_OR_RETURN(float* const w, b.Floats(kParameters));
  ASSIGN_OR_RETURN(void* const m, b.Zeros(kParameters * 4));
  ASSIGN_OR_RETURN(void* const v, b.Zeros(kParameters * 4));
  ASSIGN_OR_RETURN(Bf16* const narrow, b.Bf16s(kParameters));
  RETURN_IF_ERROR(b.Bytes("AdamW, weights as BF16 too", 30 * n, [&] {
    return AdamWStep(kParameters, AdamWParams(), g, w, w, static_cast<float*>(m),
                     static_cast<float*>(v), narrow, b.stream());
  }));
  RETURN_IF_ERROR(b.Bytes("add, FP32", 12 * n, [&] {
    return Add(g, w, static_cast<float*>(m), kParameters, b.stream());
  }));
  ASSIGN_OR_RETURN(Bf16* const other, b.Bf16s(kParameters));
  ASSIGN_OR_RETURN(Bf16* const sum, b.Bf16s(kParameters));
  RETURN_IF_ERROR(b.Bytes("add, BF16", 6 * n,
                          [&] { return Add(narrow, other, sum, kParameters, b.stream()); }));
  LinearWeights<Bf16> weights(kParameters, 1, WeightOrder::kInOut);
  RETURN_IF_ERROR(b.Bytes("weights to BF16", 6 * n, [&] { return weights.Bind(g, b.stream()); }));
  return b.stream().Synchronize();
}

absl::Status TimeActivation(CudaBenchmark& b) {
  const int64_t n = kRows * kInner;
  const auto elements = static_cast<double>(n);
  ASSIGN_OR_RETURN(Bf16* const pre, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const y, b.Bf16s(n));
  ASSIGN_OR_RETURN(float* const bias, b.Floats(kInner));
  RETURN_IF_ERROR(b.Bytes("bias and GELU, BF16", 6 * elements, [&] {
    return BiasActivationForward(Activation::kGelu, kRows, kInner, bias, pre, y, b.stream());
  }));
  RETURN_IF_ERROR(b.Bytes("GELU backward, BF16", 6 * elements, [&] {
    return ActivationBackward(Activation::kGelu, n, y, pre, y, b.stream());
  }));
  return b.Bytes("bias gradient, BF16", 2 * elements,
                 [&] { return BiasGradient(kRows, kInner, pre, bias, b.stream()); });
}

template <typename T>
absl::Status TimeSquare(CudaBenchmark& b, MatMulHandle& handle, absl::string_view name,
                        int64_t size, const T* x, T* y) {
  const auto n = static_cast<double>(size);
  return b.Products(name, n * n * n, [&] {
    return MatMul(handle, Transpose::kNo, Transpose::kNo, size, size, size, x, size, x, size, 0.0f,
                  y, size, b.stream());
  });
}

absl::Status TimeProducts(CudaBenchmark& b, MatMulHandle& handle) {
  const int64_t size = CudaBenchmark::Size(8192, 32);
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(kRows * kInner));
  ASSIGN_OR_RETURN(Bf16* const y, b.Bf16s(kRows * kInner));
  ASSIGN_OR_RETURN(Bf16* const pre, b.Bf16s(kRows * kInner));
  RETURN_IF_ERROR(TimeSquare(b, handle, "square product, BF16", size, x, y));
  ASSIGN_OR_RETURN(float* const wide, b.Floats(size * size));
  ASSIGN_OR_RETURN(float* const to, b.Floats(size * size));
  RETURN_IF_ERROR(TimeSquare(b, handle, "square product, FP32", size, wide, to));

  ASSIGN_OR_RETURN(float* const bias, b.Floats(kInner));
  ASSIGN_OR_RETURN(Bf16* const w, b.Bf16s(kWidth * kInner));
  ASSIGN_OR_RETURN(float* const dw, b.Floats(kWidth * kInner));
  LinearWeights<Bf16> up(kWidth, kInner, WeightOrder::kInOut);
  RETURN_IF_ERROR(up.Bind(w, b.stream()));
  const auto products = static_cast<double>(kRows) * static_cast<double>(kWidth * kInner);
  RETURN_IF_ERROR(b.Products("linear with bias", products, [&] {
    return LinearForward(handle, up, kRows, x, bias, y, b.stream());
  }));
  RETURN_IF_ERROR(b.Products("linear with bias and GELU", products, [&] {
    return LinearActivationForward(handle, up, kRows, x, bias, Activation::kGelu, pre, y,
                                   b.stream());
  }));
  RETURN_IF_ERROR(b.Products("linear, input gradient", products, [&] {
    return LinearInputGradient(handle, up, kRows, y, /*accumulate=*/false, x, b.stream());
  }));
  return b.Products("linear, weight gradient", products, [&] {
    return LinearWeightGradient(handle, WeightOrder::kInOut, kWidth, kInner, kRows, x, y,
                                /*accumulate=*/true, dw, b.stream());
  });
}

absl::Status TimeHead(CudaBenchmark& b, MatMulHandle& handle) {
  const int64_t rows = kRows / 4;
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(rows * kWidth));
  ASSIGN_OR_RETURN(Bf16* const w, b.Bf16s(kVocabulary * kWidth));
  ASSIGN_OR_RETURN(float* const logits, b.Floats(rows * kVocabulary));
  LinearWeights<Bf16> head(kWidth, kVocabulary, WeightOrder::kOutIn);
  RETURN_IF_ERROR(head.Bind(w, b.stream()));
  const auto products = static_cast<double>(rows) * static_cast<double>(kWidth * kVocabulary);
  return b.Products("head, logits in FP32", products, [&] {
    return LinearForward(handle, head, rows, x, nullptr, logits, b.stream());
  });
}

absl::Status Run(CudaBenchmark& b) {
  ASSIGN_OR_RETURN(MatMulHandle handle, MatMulHandle::Create());
  RETURN_IF_ERROR(TimeCopy(b));
  RETURN_IF_ERROR(TimeElements(b));
  RETURN_IF_ERROR(TimeActivation(b));
  RETURN_IF_ERROR(TimeProducts(b, handle));
  RETURN_IF_ERROR(TimeHead(b, handle));
  return b.stream().Synchronize();
}

#else

// Without CUDA there is no GPU either, so that nothing is to run.
absl::Status Run(CudaBenchmark&) { return CheckGpu(); }

#endif

}  // namespace
}  // namespace tug::kernels::cuda

int main() { return tug::kernels::cuda::RunCudaBenchmark(tug::kernels::cuda::Run); }
