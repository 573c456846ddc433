// SPDX-License-Identifier: Apache-2.0
// The GPU kernels at the shapes of a GPT of width 2,048 on 16 samples of 1,024 tokens (attention:
// 12 heads of 64). Bytes of device memory per second, counting those that must be read and written,
// are compared with a copy; products are compared with a large square matrix product; all in the
// same run.
#include "kernels/cuda/device/cuda_benchmark.h"

#if TUG_CUDA || TUG_CUDA_EMULATED
#include <vector>

#include "base/status_macros.h"
#include "kernels/cuda/activation_cuda.h"
#include "kernels/cuda/adamw_cuda.h"
#include "kernels/cuda/add_cuda.h"
#include "kernels/cuda/attention/attention_cuda.h"
#include "kernels/cuda/benchmark/cuda_peaks.h"
#include "kernels/cuda/bf16_cast_cuda.h"
#include "kernels/cuda/bias_cuda.h"
#include "kernels/cuda/cross_entropy_cuda.h"
#include "kernels/cuda/dropout_cuda.h"
#include "kernels/cuda/embedding_cuda.h"
#include "kernels/cuda/layernorm_cuda.h"
#include "kernels/cuda/sgd_cuda.h"
#include "kernels/cuda/sum_cuda.h"
#include "kernels/cuda/toolkit/linear_cuda.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"
#endif

namespace tug::kernels::cuda {
namespace {

#if TUG_CUDA || TUG_CUDA_EMULATED

const int64_t kSamples = CudaBenchmark::Size(16, 2);
const int64_t kSeq = CudaBenchmark::Size(1024, 8);
const int64_t kRows = kSamples * kSeq;
const int64_t kWidth = CudaBenchmark::Size(2048, 64);
const int64_t kInner = 4 * kWidth;
const int64_t kVocabulary = CudaBenchmark::Size(50257, 97);
const int64_t kLogitsStride = (kVocabulary + 7) / 8 * 8;
const int64_t kParameters = CudaBenchmark::Size(64 << 20, 1 << 10);
constexpr float kDropout = 0.1f;

absl::Status TimeElements(CudaBenchmark& b) {
  const auto n = static_cast<double>(kParameters);
  ASSIGN_OR_RETURN(float* const g, b.Floats(kParameters));
  ASSIGN_OR_RETURN(float* const w, b.Floats(kParameters));
  ASSIGN_OR_RETURN(void* const m, b.Zeros(kParameters * 4));
  ASSIGN_OR_RETURN(void* const v, b.Zeros(kParameters * 4));
  ASSIGN_OR_RETURN(Bf16* const narrow, b.Bf16s(kParameters));
  RETURN_IF_ERROR(b.Bytes("AdamW, weights as BF16 too", 30 * n, [&] {
    return AdamWStep(AdamWParams(),
                     {kParameters, g, w, w, static_cast<float*>(m), static_cast<float*>(v), narrow},
                     b.stream());
  }));
  RETURN_IF_ERROR(b.Bytes("add, FP32", 12 * n, [&] {
    return Add(g, w, static_cast<float*>(m), kParameters, b.stream());
  }));
  ASSIGN_OR_RETURN(Bf16* const other, b.Bf16s(kParameters));
  ASSIGN_OR_RETURN(Bf16* const sum, b.Bf16s(kParameters));
  RETURN_IF_ERROR(b.Bytes("add, BF16", 6 * n,
                          [&] { return Add(narrow, other, sum, kParameters, b.stream()); }));
  RETURN_IF_ERROR(b.Bytes("cast, FP32 to BF16", 6 * n,
                          [&] { return Bf16FromFloat(g, narrow, kParameters, b.stream()); }));
  return b.Bytes("cast, BF16 to FP32", 6 * n,
                 [&] { return FloatFromBf16(narrow, w, kParameters, b.stream()); });
}

absl::Status TimeGradients(CudaBenchmark& b) {
  const auto n = static_cast<double>(kParameters);
  ASSIGN_OR_RETURN(float* const g, b.Floats(kParameters));
  ASSIGN_OR_RETURN(float* const w, b.Floats(kParameters));
  ASSIGN_OR_RETURN(void* const velocity, b.Zeros(kParameters * 4));
  ASSIGN_OR_RETURN(Bf16* const narrow, b.Bf16s(kParameters));
  ASSIGN_OR_RETURN(void* const finite, b.Floats(1));  // not 0 as long as all elements are finite
  ASSIGN_OR_RETURN(void* const sum, b.Zeros(8));
  auto* const all_finite = static_cast<uint32_t*>(finite);
  SgdParams params;
  params.momentum = 0.9f;
  RETURN_IF_ERROR(b.Bytes("SGD with momentum, weights as BF16 too", 22 * n, [&] {
    return SgdStep(params, {kParameters, g, w, w, static_cast<float*>(velocity), narrow},
                   b.stream());
  }));
  RETURN_IF_ERROR(b.Bytes("sum, accumulate and check", 12 * n,
                          [&] { return AddAndCheck(g, w, kParameters, all_finite, b.stream()); }));
  RETURN_IF_ERROR(b.Bytes("sum, all finite", 4 * n,
                          [&] { return AllFinite(g, kParameters, all_finite, b.stream()); }));
  return b.Bytes("sum of squares", 4 * n, [&] {
    return SumOfSquares(g, kParameters, static_cast<double*>(sum), b.stream());
  });
}

absl::Status TimeLayerNorm(CudaBenchmark& b) {
  const int64_t n = kRows * kWidth;
  const auto elements = static_cast<double>(n);
  const double statistics = 8.0 * static_cast<double>(kRows);
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const residual, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const sum, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const y, b.Bf16s(n));
  ASSIGN_OR_RETURN(float* const gamma, b.Floats(kWidth));
  ASSIGN_OR_RETURN(float* const beta, b.Floats(kWidth));
  ASSIGN_OR_RETURN(float* const bias, b.Floats(kWidth));
  ASSIGN_OR_RETURN(float* const dgamma, b.Floats(kWidth));
  ASSIGN_OR_RETURN(float* const dbeta, b.Floats(kWidth));
  ASSIGN_OR_RETURN(float* const mean, b.Floats(kRows));
  ASSIGN_OR_RETURN(float* const rstd, b.Floats(kRows));
  RETURN_IF_ERROR(b.Bytes("LayerNorm, BF16", 4 * elements + statistics, [&] {
    return LayerNormForward<Bf16>({kRows, kWidth, x, gamma, beta, y, mean, rstd}, b.stream());
  }));
  RETURN_IF_ERROR(
      b.Bytes("LayerNorm behind residual and dropout, BF16", 8 * elements + statistics, [&] {
        return ResidualLayerNormForward<Bf16>(
            {{kSamples, kSeq * kWidth, kWidth, x, bias, residual, kDropout, DropoutKey(), sum},
             gamma,
             beta,
             y,
             mean,
             rstd},
            b.stream());
      }));
  return b.Bytes("LayerNorm backward, BF16", 6 * elements + statistics, [&] {
    return LayerNormBackward<Bf16>(
        {kRows, kWidth, y, x, gamma, mean, rstd, /*accumulate=*/false, sum, dgamma, dbeta},
        b.stream());
  });
}

absl::Status TimeDropout(CudaBenchmark& b) {
  const int64_t n = kRows * kWidth;
  const auto elements = static_cast<double>(n);
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const residual, b.Bf16s(n));
  ASSIGN_OR_RETURN(Bf16* const y, b.Bf16s(n));
  RETURN_IF_ERROR(b.Bytes("dropout and residual, BF16", 6 * elements, [&] {
    return DropoutAdd<Bf16>({.samples = kSamples,
                             .elements_per_sample = kSeq * kWidth,
                             .x = x,
                             .residual = residual,
                             .p = kDropout,
                             .y = y},
                            b.stream());
  }));
  return b.Bytes("dropout backward, BF16", 4 * elements, [&] {
    return DropoutAdd<Bf16>(
        {.samples = kSamples, .elements_per_sample = kSeq * kWidth, .x = x, .p = kDropout, .y = y},
        b.stream());
  });
}

// `count` different tokens: each reads or changes its own row.
absl::StatusOr<int32_t*> Tokens(CudaBenchmark& b, int64_t count) {
  constexpr int64_t kStep = 7919;  // a prime, which does not divide the vocabulary
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(i * kStep % kVocabulary));
  }
  ASSIGN_OR_RETURN(void* const on_device, b.Zeros(count * 4));
  RETURN_IF_ERROR(CopyToDeviceAsync(on_device, tokens.data(), tokens.size() * 4, b.stream()));
  RETURN_IF_ERROR(b.stream().Synchronize());
  return static_cast<int32_t*>(on_device);
}

absl::Status TimeEmbedding(CudaBenchmark& b) {
  const auto elements = static_cast<double>(kRows * kWidth);
  const auto positions = static_cast<double>(kSeq * kWidth);
  const double token_bytes = 4.0 * static_cast<double>(kRows);
  ASSIGN_OR_RETURN(int32_t* const tokens, Tokens(b, kRows));
  ASSIGN_OR_RETURN(float* const wte, b.Floats(kVocabulary * kWidth));
  ASSIGN_OR_RETURN(float* const wpe, b.Floats(kSeq * kWidth));
  ASSIGN_OR_RETURN(Bf16* const out, b.Bf16s(kRows * kWidth));
  RETURN_IF_ERROR(
      b.Bytes("embedding, FP32 to BF16", 6 * elements + 4 * positions + token_bytes, [&] {
        return EmbeddingForward<float, Bf16>({kSamples, kSeq, kWidth, tokens, wte, wpe, out},
                                             b.stream());
      }));
  return b.Bytes("embedding backward, BF16", 10 * elements + 8 * positions + token_bytes, [&] {
    return EmbeddingBackward<Bf16>({kSamples, kSeq, kWidth, tokens, out, wte, wpe}, b.stream());
  });
}

absl::Status TimeCrossEntropy(CudaBenchmark& b) {
  const int64_t rows = kRows / 4;
  const auto elements = static_cast<double>(rows * kVocabulary);
  ASSIGN_OR_RETURN(int32_t* const targets, Tokens(b, rows));
  ASSIGN_OR_RETURN(float* const logits, b.Floats(rows * kLogitsStride));
  ASSIGN_OR_RETURN(Bf16* const gradient, b.Bf16s(rows * kLogitsStride));
  ASSIGN_OR_RETURN(float* const losses, b.Floats(rows));
  RETURN_IF_ERROR(b.Bytes("cross entropy, gradient in BF16", 6 * elements, [&] {
    return CrossEntropy<Bf16>(
        {rows, kVocabulary, kLogitsStride, logits, targets, Objective(), gradient, losses, nullptr},
        b.stream());
  }));
  return b.Bytes("cross entropy, losses alone", 4 * elements, [&] {
    return CrossEntropy<Bf16>({.rows = rows,
                               .vocab = kVocabulary,
                               .stride = kLogitsStride,
                               .logits = logits,
                               .targets = targets,
                               .losses = losses},
                              b.stream());
  });
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
                 [&] { return BiasGradient(kRows, kInner, pre, kInner, bias, b.stream()); });
}

absl::Status TimeProducts(CudaBenchmark& b, MatMulHandle& handle) {
  RETURN_IF_ERROR(TimeSquareProduct<Bf16>(b, handle));
  RETURN_IF_ERROR(TimeSquareProduct<float>(b, handle));
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(kRows * kInner));
  ASSIGN_OR_RETURN(Bf16* const y, b.Bf16s(kRows * kInner));
  ASSIGN_OR_RETURN(Bf16* const pre, b.Bf16s(kRows * kInner));
  ASSIGN_OR_RETURN(Bf16* const bias, b.Bf16s(kInner));
  ASSIGN_OR_RETURN(Bf16* const w, b.Bf16s(kWidth * kInner));
  ASSIGN_OR_RETURN(float* const dw, b.Floats(kWidth * kInner));
  const LinearWeights<Bf16> up = {kWidth, kInner, WeightOrder::kInOut, w};
  const auto products = static_cast<double>(kRows) * static_cast<double>(kWidth * kInner);
  RETURN_IF_ERROR(b.Products("linear with bias", products, [&] {
    return LinearForward<Bf16, Bf16, Bf16>(handle, up, {kRows, x, bias, y, kInner}, b.stream());
  }));
  RETURN_IF_ERROR(b.Products("linear with bias and GELU", products, [&] {
    return LinearActivationForward<Bf16, Bf16>(
        handle, up, {kRows, x, bias, Activation::kGelu, pre, y}, b.stream());
  }));
  RETURN_IF_ERROR(b.Products("linear, input gradient", products, [&] {
    return LinearInputGradient<Bf16>(handle, up, {kRows, y, kInner, /*accumulate=*/false, x},
                                     b.stream());
  }));
  return b.Products("linear, weight gradient", products, [&] {
    return LinearWeightGradient<Bf16>(handle,
                                      {kWidth, kInner, WeightOrder::kInOut, kRows, x, y, kInner,
                                       /*accumulate=*/true, dw},
                                      b.stream());
  });
}

// Causal. The backward pass is counted as five products, though two are computed twice.
absl::Status TimeAttention(CudaBenchmark& b) {
  const AttentionShape shape = {.batch = kSamples,
                                .queries = CudaBenchmark::Size(1024, 64),
                                .keys = CudaBenchmark::Size(1024, 64),
                                .heads = CudaBenchmark::Size(12, 2),
                                .head_dim = 64,
                                .causal = true};
  const int64_t width = shape.width();
  const int64_t n = shape.batch * shape.queries * width;
  ASSIGN_OR_RETURN(const Bf16* const qkv, b.Bf16s(3 * n));
  ASSIGN_OR_RETURN(Bf16* const dqkv, b.Bf16s(3 * n));
  ASSIGN_OR_RETURN(Bf16* const out, b.Bf16s(n));
  ASSIGN_OR_RETURN(const Bf16* const dout, b.Bf16s(n));
  ASSIGN_OR_RETURN(float* const log_sum_exp, b.Floats(shape.stats_size()));
  const AttentionOperands<const Bf16> in = {qkv, qkv + width, qkv + 2 * width, 3 * width,
                                            3 * width};
  const AttentionOperands<Bf16> gradient = {dqkv, dqkv + width, dqkv + 2 * width, 3 * width,
                                            3 * width};
  const double reached = static_cast<double>(shape.queries) * (shape.queries + 1) / 2;
  const double product = static_cast<double>(shape.batch * width) * reached;
  const auto time = [&](float p, absl::string_view forward,
                        absl::string_view backward) -> absl::Status {
    RETURN_IF_ERROR(b.Products(forward, 2 * product, [&] {
      return AttentionForward<Bf16>({shape, in, p, DropoutKey(), out, log_sum_exp}, b.stream());
    }));
    return b.Products(backward, 5 * product, [&] {
      return AttentionBackward<Bf16>({shape, in, p, DropoutKey(), out, log_sum_exp, dout, gradient},
                                     b.stream());
    });
  };
  RETURN_IF_ERROR(time(0, "attention, BF16", "attention backward, BF16"));
  return time(kDropout, "attention with dropout, BF16", "attention with dropout backward, BF16");
}

absl::Status TimeHead(CudaBenchmark& b, MatMulHandle& handle) {
  const int64_t rows = kRows / 4;
  ASSIGN_OR_RETURN(Bf16* const x, b.Bf16s(rows * kWidth));
  ASSIGN_OR_RETURN(Bf16* const w, b.Bf16s(kVocabulary * kWidth));
  ASSIGN_OR_RETURN(float* const logits, b.Floats(rows * kLogitsStride));
  const LinearWeights<Bf16> head = {kWidth, kVocabulary, WeightOrder::kOutIn, w};
  const auto products = static_cast<double>(rows) * static_cast<double>(kWidth * kVocabulary);
  return b.Products("head, logits in FP32", products, [&] {
    return LinearForward<Bf16, float, float>(
        handle, head, {rows, x, /*bias=*/nullptr, logits, kLogitsStride}, b.stream());
  });
}

absl::Status Run(CudaBenchmark& b) {
  ASSIGN_OR_RETURN(MatMulHandle handle, MatMulHandle::Create());
  RETURN_IF_ERROR(TimeCopy(b));
  RETURN_IF_ERROR(TimeElements(b));
  RETURN_IF_ERROR(TimeGradients(b));
  RETURN_IF_ERROR(TimeActivation(b));
  RETURN_IF_ERROR(TimeLayerNorm(b));
  RETURN_IF_ERROR(TimeDropout(b));
  RETURN_IF_ERROR(TimeEmbedding(b));
  RETURN_IF_ERROR(TimeCrossEntropy(b));
  RETURN_IF_ERROR(TimeProducts(b, handle));
  RETURN_IF_ERROR(TimeAttention(b));
  RETURN_IF_ERROR(TimeHead(b, handle));
  return b.stream().Synchronize();
}

#else

// Without CUDA there is no GPU, so nothing runs.
absl::Status Run(CudaBenchmark&) { return CheckGpu(); }

#endif

}  // namespace
}  // namespace tug::kernels::cuda

int main() { return tug::kernels::cuda::RunCudaBenchmark(tug::kernels::cuda::Run); }
