#include "model/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/lease.h"
#include "kernels/bias.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"

namespace tug {
namespace {

template <typename T>
class CpuMatrix final : public WeightMatrix<T> {
 public:
  CpuMatrix(ThreadPool& pool, int64_t in, int64_t out, kernels::WeightOrder order)
      : WeightMatrix<T>(in, out, order), pool_(pool), weights_(in, out, order) {}

  void Bind(const float* w) override { weights_.Bind(pool_, w); }
  void Bind(const kernels::Bf16* w) override {
    if constexpr (std::is_same_v<T, kernels::Bf16>) {
      weights_.Bind(pool_, w);
    } else {
      TUG_CHECK(false) << "bf16 weights of a model of floats";
    }
  }
  void Release() override { weights_.Release(); }
  uint64_t copy_bytes() const override { return weights_.copy_bytes(); }

  const kernels::LinearWeights<T>& weights() const { return weights_; }

 private:
  ThreadPool& pool_;
  kernels::LinearWeights<T> weights_;
};

template <typename T>
const kernels::LinearWeights<T>& WeightsOf(const WeightMatrix<T>& matrix) {
  return static_cast<const CpuMatrix<T>&>(matrix).weights();
}

}  // namespace

// The order is that of model/backend.h.

template <typename T>
absl::StatusOr<std::shared_ptr<std::byte>> CpuBackend<T>::Allocate(size_t size_bytes,
                                                                   absl::string_view) {
  const auto buffer = std::make_shared<AlignedBuffer>(size_bytes);
  return std::shared_ptr<std::byte>(buffer, buffer->data());
}

template <typename T>
typename Backend<T>::Inputs CpuBackend<T>::LoadInputs(const MicroBatch& batch) {
  const auto array = [](std::span<const int32_t> values) {
    return values.empty() ? nullptr : values.data();
  };
  return {.tokens = array(batch.tokens),
          .lengths = array(batch.lengths),
          .decoder_tokens = array(batch.decoder_tokens),
          .targets = array(batch.targets)};
}

template <typename T>
void CpuBackend<T>::FillZero(void* to, size_t size_bytes) {
  std::memset(to, 0, size_bytes);
}

template <typename T>
void CpuBackend<T>::CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                             int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * from_stride, width, to + row * to_stride);
  }
}

template <typename T>
void CpuBackend<T>::Fetch(void* host, const void* from, size_t size_bytes) {
  std::memcpy(host, from, size_bytes);
}

template <typename T>
std::unique_ptr<WeightMatrix<T>> CpuBackend<T>::NewMatrix(int64_t in, int64_t out,
                                                          kernels::WeightOrder order) {
  return std::make_unique<CpuMatrix<T>>(pool_, in, out, order);
}

template <typename T>
void CpuBackend<T>::FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) {
  kernels::FloatFromBf16(src, dst, n);
}

template <typename T>
void CpuBackend<T>::LinearForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                  const float* bias, T* y) {
  kernels::LinearForward<T, T>(pool_, WeightsOf(w), rows, x, bias, y);
}

template <typename T>
void CpuBackend<T>::LogitsForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                  const float* bias, float* y) {
  kernels::LinearForward<T, float>(pool_, WeightsOf(w), rows, x, bias, y);
}

template <typename T>
void CpuBackend<T>::LinearActivationForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                            const float* bias, kernels::Activation activation,
                                            T* pre, T* y) {
  kernels::LinearActivationForward<T>(pool_, WeightsOf(w), rows, x, bias, activation, pre, y);
}

template <typename T>
void CpuBackend<T>::LinearInputGradient(const WeightMatrix<T>& w, int64_t rows, const T* dy,
                                        int64_t dy_stride, bool accumulate, T* dx) {
  TUG_CHECK_EQ(dy_stride, w.out());
  kernels::LinearInputGradient<T>(pool_, WeightsOf(w), rows, dy, accumulate, dx);
}

template <typename T>
void CpuBackend<T>::LinearWeightGradient(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                         const T* dy, int64_t dy_stride, bool accumulate,
                                         float* dw) {
  TUG_CHECK_EQ(dy_stride, w.out());
  kernels::LinearWeightGradient<T>(pool_, w.order(), w.in(), w.out(), rows, x, dy, accumulate, dw);
}

template <typename T>
void CpuBackend<T>::BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                                 float* dbias) {
  TUG_CHECK_EQ(dy_stride, width);
  kernels::BiasGradient<T>(pool_, rows, width, dy, dbias);
}

template <typename T>
void CpuBackend<T>::ActivationBackward(kernels::Activation activation, int64_t n, const T* dy,
                                       const T* pre, T* dx) {
  kernels::ActivationBackward<T>(pool_, activation, n, dy, pre, dx);
}

template <typename T>
void CpuBackend<T>::AttentionForward(const kernels::AttentionShape& shape,
                                     const kernels::AttentionOperands<const T>& in, float p,
                                     const kernels::DropoutKey& key, T* out, float* log_sum_exp) {
  kernels::AttentionForward<T>(pool_, shape, in, p, key, out, log_sum_exp);
}

template <typename T>
void CpuBackend<T>::AttentionBackward(const kernels::AttentionShape& shape, const T* dout,
                                      const kernels::AttentionOperands<const T>& in,
                                      const T* /*out*/, const float* log_sum_exp, float p,
                                      const kernels::DropoutKey& key,
                                      const kernels::AttentionOperands<T>& gradient) {
  kernels::AttentionBackward<T>(pool_, shape, dout, in, log_sum_exp, p, key, gradient);
}

template <typename T>
void CpuBackend<T>::LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                                     const float* beta, T* y, float* mean, float* rstd) {
  kernels::LayerNormForward<T>(pool_, rows, width, x, gamma, beta, y, mean, rstd);
}

template <typename T>
void CpuBackend<T>::ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width,
                                             const T* x, const T* residual, float p,
                                             const kernels::DropoutKey& key, const float* gamma,
                                             const float* beta, T* sum, T* y, float* mean,
                                             float* rstd) {
  kernels::ResidualLayerNormForward<T>(pool_, samples, seq, width, x, /*bias=*/nullptr, residual, p,
                                       key, gamma, beta, sum, y, mean, rstd);
}

template <typename T>
void CpuBackend<T>::LayerNormBackward(int64_t rows, int64_t width, const T* dy, const T* x,
                                      const float* gamma, const float* mean, const float* rstd,
                                      bool accumulate, T* dx, float* dgamma, float* dbeta) {
  kernels::LayerNormBackward<T>(pool_, rows, width, dy, x, gamma, mean, rstd, accumulate, dx,
                                dgamma, dbeta);
}

template <typename T>
void CpuBackend<T>::DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x,
                               const T* residual, float p, const kernels::DropoutKey& key, T* y) {
  kernels::DropoutAdd<T>(pool_, samples, elements_per_sample, x, residual, p, key, y);
}

template <typename T>
void CpuBackend<T>::DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy,
                                    float p, const kernels::DropoutKey& key, T* dx) {
  kernels::DropoutBackward<T>(pool_, samples, elements_per_sample, dy, p, key, dx);
}

template <typename T>
void CpuBackend<T>::EmbeddingForward(int64_t samples, int64_t seq, int64_t width,
                                     const int32_t* tokens, const float* wte, const float* wpe,
                                     T* out) {
  kernels::EmbeddingForward<float, T>(pool_, samples, seq, width, tokens, wte, wpe, out);
}

template <typename T>
void CpuBackend<T>::EmbeddingForward(int64_t samples, int64_t seq, int64_t width,
                                     const int32_t* tokens, const kernels::Bf16* wte,
                                     const kernels::Bf16* wpe, T* out) {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    kernels::EmbeddingForward<kernels::Bf16, T>(pool_, samples, seq, width, tokens, wte, wpe, out);
  } else {
    TUG_CHECK(false) << "bf16 weights of a model of floats";
  }
}

template <typename T>
void CpuBackend<T>::EmbeddingBackward(int64_t samples, int64_t seq, int64_t width,
                                      const int32_t* tokens, const T* dout, float* dwte,
                                      float* dwpe) {
  kernels::EmbeddingBackward<T>(pool_, samples, seq, width, tokens, dout, dwte, dwpe);
}

template <typename T>
void CpuBackend<T>::CrossEntropy(int64_t rows, int64_t vocab, const float* logits,
                                 const int32_t* targets, const kernels::Objective& objective,
                                 T* gradient, float* losses, uint8_t* correct) {
  kernels::CrossEntropy<T>(pool_, rows, vocab, logits, targets, objective, gradient, losses,
                           correct);
}

template <typename T>
void CpuBackend<T>::CrossEntropyLoss(int64_t rows, int64_t vocab, const float* logits,
                                     const int32_t* targets, float* losses, uint8_t* correct) {
  kernels::CrossEntropyLoss(pool_, rows, vocab, logits, targets, losses, correct);
}

absl::StatusOr<std::unique_ptr<Backend<float>>> CpuDevice::NewFp32Backend() {
  return std::make_unique<CpuBackend<float>>(pool_);
}

absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> CpuDevice::NewBf16Backend() {
  return std::make_unique<CpuBackend<kernels::Bf16>>(pool_);
}

template class CpuBackend<float>;
template class CpuBackend<kernels::Bf16>;

}  // namespace tug
