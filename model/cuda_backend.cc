#include "model/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/activation_cuda.h"
#include "kernels/attention_cuda.h"
#include "kernels/bf16_cast_cuda.h"
#include "kernels/bias_cuda.h"
#include "kernels/cross_entropy_cuda.h"
#include "kernels/dropout_cuda.h"
#include "kernels/embedding_cuda.h"
#include "kernels/layernorm_cuda.h"

namespace tug {
namespace {

namespace cuda = kernels::cuda;
using kernels::Bf16;

constexpr size_t kFetchBytes = size_t{1} << 20;  // at a time
constexpr size_t kLine = 64;                     // bytes, where an array of inputs begins

size_t InputBytes(std::span<const int32_t> array) {
  return (array.size_bytes() + kLine - 1) / kLine * kLine;
}

}  // namespace

template <typename T>
class CudaBackend<T>::Matrix final : public WeightMatrix<T> {
 public:
  Matrix(CudaBackend& backend, int64_t in, int64_t out, kernels::WeightOrder order)
      : WeightMatrix<T>(in, out, order), backend_(backend), weights_(in, out, order) {}

  void Bind(const float* w) override {
    bias_is_new_ = true;
    backend_.Queue("copy of a weight matrix", [&] { return weights_.Bind(w, *backend_.stream_); });
  }
  void Bind(const Bf16* w) override {
    if constexpr (std::is_same_v<T, Bf16>) {
      bias_is_new_ = true;
      backend_.Queue("weight matrix", [&] { return weights_.Bind(w, *backend_.stream_); });
    } else {
      TUG_CHECK(false) << "bf16 weights of a model of floats";
    }
  }
  void Release() override {
    weights_.Release();
    bias_.reset();
  }
  uint64_t copy_bytes() const override {
    return weights_.copy_bytes() + (bias_.has_value() ? bias_->size_bytes() : 0);
  }

  // `matrix`: one that this backend made.
  static const Matrix& Of(const WeightMatrix<T>& matrix) {
    return static_cast<const Matrix&>(matrix);
  }
  const cuda::LinearWeights<T>& weights() const { return weights_; }
  // `bias` in T, to which the first product after a Bind rounds it.
  absl::StatusOr<const T*> Rounded(const float* bias) const {
    if constexpr (std::is_same_v<T, float>) {
      return bias;
    } else {
      if (bias == nullptr) return nullptr;
      if (!bias_.has_value()) {
        ASSIGN_OR_RETURN(bias_,
                         cuda::DeviceBuffer::Create(static_cast<size_t>(this->out()) * sizeof(T)));
        bias_is_new_ = true;
      }
      if (bias_is_new_) {
        RETURN_IF_ERROR(cuda::Bf16FromFloat(bias, bias_->As<T>(), this->out(), *backend_.stream_));
        bias_is_new_ = false;
      }
      return bias_->As<T>();
    }
  }

 private:
  CudaBackend& backend_;
  cuda::LinearWeights<T> weights_;
  // Made by products, to which matrices are constant.
  mutable std::optional<cuda::DeviceBuffer> bias_;
  mutable bool bias_is_new_ = true;
};

template <typename T>
absl::StatusOr<std::unique_ptr<CudaBackend<T>>> CudaBackend<T>::Create(
    int device, std::shared_ptr<const cuda::Stream> stream) {
  RETURN_IF_ERROR(cuda::UseDevice(device));
  ASSIGN_OR_RETURN(cuda::MatMulHandle products, cuda::MatMulHandle::Create());
  ASSIGN_OR_RETURN(cuda::PinnedBuffer fetched, cuda::PinnedBuffer::Create(kFetchBytes));
  ASSIGN_OR_RETURN(cuda::Event one, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event other, cuda::Event::Create());
  return std::unique_ptr<CudaBackend>(
      new CudaBackend(device, std::move(stream), std::move(products), std::move(fetched),
                      {Staging{.copied = std::move(one)}, Staging{.copied = std::move(other)}}));
}

template <typename T>
CudaBackend<T>::CudaBackend(int device, std::shared_ptr<const cuda::Stream> stream,
                            cuda::MatMulHandle products, cuda::PinnedBuffer fetched,
                            std::array<Staging, 2> staging)
    : device_(device),
      stream_(std::move(stream)),
      products_(std::move(products)),
      fetched_(std::move(fetched)),
      staging_(std::move(staging)) {}

template <typename T>
CudaBackend<T>::~CudaBackend() {
  stream_->Synchronize().IgnoreError();
}

template <typename T>
absl::StatusOr<std::shared_ptr<std::byte>> CudaBackend<T>::Allocate(size_t size_bytes,
                                                                    absl::string_view what) {
  std::shared_ptr<cuda::DeviceBuffer> buffer;
  Queue(what, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(cuda::DeviceBuffer created, cuda::DeviceBuffer::Create(size_bytes));
    buffer = std::make_shared<cuda::DeviceBuffer>(std::move(created));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(status_);
  return std::shared_ptr<std::byte>(buffer, buffer->As<std::byte>());
}

template <typename T>
typename CudaBackend<T>::Inputs CudaBackend<T>::LoadInputs(const MicroBatch& batch) {
  const std::array<std::span<const int32_t>, kInputs> arrays = {
      batch.tokens, batch.lengths, batch.decoder_tokens, batch.targets};
  // After an error nobody reads there, and any address will do.
  std::array<const int32_t*, kInputs> loaded;
  for (size_t i = 0; i < kInputs; ++i) {
    loaded[i] = arrays[i].empty() ? nullptr : arrays[i].data();
  }
  Queue("arrays of a micro-batch", [&] { return QueueInputs(arrays, loaded); });
  return {
      .tokens = loaded[0], .lengths = loaded[1], .decoder_tokens = loaded[2], .targets = loaded[3]};
}

template <typename T>
absl::Status CudaBackend<T>::QueueInputs(
    const std::array<std::span<const int32_t>, kInputs>& arrays,
    std::array<const int32_t*, kInputs>& loaded) {
  size_t bytes = 0;
  for (const auto& array : arrays) bytes += InputBytes(array);
  if (!inputs_.has_value() || inputs_->size_bytes() < bytes) {
    ASSIGN_OR_RETURN(inputs_, cuda::DeviceBuffer::Create(bytes));
  }
  Staging& staging = staging_[next_staging_];
  next_staging_ = (next_staging_ + 1) % staging_.size();
  RETURN_IF_ERROR(staging.copied.Synchronize());
  if (!staging.memory.has_value() || staging.memory->size_bytes() < bytes) {
    ASSIGN_OR_RETURN(staging.memory, cuda::PinnedBuffer::Create(bytes));
  }
  size_t offset = 0;
  for (size_t i = 0; i < kInputs; ++i) {
    if (arrays[i].empty()) continue;
    std::memcpy(staging.memory->template As<std::byte>() + offset, arrays[i].data(),
                arrays[i].size_bytes());
    loaded[i] = reinterpret_cast<const int32_t*>(inputs_->As<std::byte>() + offset);
    offset += InputBytes(arrays[i]);
  }
  RETURN_IF_ERROR(
      cuda::CopyToDeviceAsync(inputs_->data(), staging.memory->data(), bytes, *stream_));
  return staging.copied.Record(*stream_);
}

template <typename T>
void CudaBackend<T>::FillZero(void* to, size_t size_bytes) {
  Queue("zeros", [&] { return cuda::FillZeroAsync(to, size_bytes, *stream_); });
}

template <typename T>
void CudaBackend<T>::CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride,
                              T* to, int64_t to_stride) {
  const auto bytes = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(T); };
  Queue("copy of rows", [&] {
    return cuda::CopyRowsOnDeviceAsync(to, bytes(to_stride), from, bytes(from_stride), bytes(width),
                                       static_cast<size_t>(rows), *stream_);
  });
}

template <typename T>
void CudaBackend<T>::Fetch(void* host, const void* from, size_t size_bytes) {
  Queue("copy to the host", [&]() -> absl::Status {
    if (size_bytes == 0) return stream_->Synchronize();
    for (size_t offset = 0; offset < size_bytes; offset += fetched_.size_bytes()) {
      const size_t bytes = std::min(size_bytes - offset, fetched_.size_bytes());
      RETURN_IF_ERROR(cuda::CopyToHostAsync(
          fetched_.data(), static_cast<const std::byte*>(from) + offset, bytes, *stream_));
      RETURN_IF_ERROR(stream_->Synchronize());
      std::memcpy(static_cast<std::byte*>(host) + offset, fetched_.data(), bytes);
    }
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status CudaBackend<T>::Synchronize() {
  const absl::Status done = stream_->Synchronize();  // behind an error too
  Queue("what was queued", [&] { return done; });
  return status_;
}

template <typename T>
std::unique_ptr<WeightMatrix<T>> CudaBackend<T>::NewMatrix(int64_t in, int64_t out,
                                                           kernels::WeightOrder order) {
  return std::make_unique<Matrix>(*this, in, out, order);
}

template <typename T>
void CudaBackend<T>::FloatFromBf16(const Bf16* src, float* dst, int64_t n) {
  Queue("widening", [&] { return cuda::FloatFromBf16(src, dst, n, *stream_); });
}

template <typename T>
void CudaBackend<T>::LinearForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                   const float* bias, T* y) {
  Queue("linear layer", [&]() -> absl::Status {
    const Matrix& matrix = Matrix::Of(w);
    ASSIGN_OR_RETURN(const T* const rounded, matrix.Rounded(bias));
    return cuda::LinearForward(products_, matrix.weights(), rows, x, rounded, y, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::LogitsForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                   const float* bias, float* y) {
  Queue("logits", [&] {
    return cuda::LinearForward(products_, Matrix::Of(w).weights(), rows, x, bias, y,
                               LogitsStride(w.out()), *stream_);
  });
}

template <typename T>
int64_t CudaBackend<T>::LogitsStride(int64_t columns) const {
  return (columns + kGpuLogitsStep - 1) / kGpuLogitsStep * kGpuLogitsStep;
}

template <typename T>
void CudaBackend<T>::LinearActivationForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                             const float* bias, kernels::Activation activation,
                                             T* pre, T* y) {
  Queue("linear layer with activation", [&]() -> absl::Status {
    const Matrix& matrix = Matrix::Of(w);
    ASSIGN_OR_RETURN(const T* const rounded, matrix.Rounded(bias));
    return cuda::LinearActivationForward(products_, matrix.weights(), rows, x, rounded, activation,
                                         pre, y, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::LinearInputGradient(const WeightMatrix<T>& w, int64_t rows, const T* dy,
                                         int64_t dy_stride, bool accumulate, T* dx) {
  Queue("input gradient of a linear layer", [&] {
    return cuda::LinearInputGradient(products_, Matrix::Of(w).weights(), rows, dy, dy_stride,
                                     accumulate, dx, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::LinearWeightGradient(const WeightMatrix<T>& w, int64_t rows, const T* x,
                                          const T* dy, int64_t dy_stride, bool accumulate,
                                          float* dw) {
  Queue("weight gradient of a linear layer", [&] {
    return cuda::LinearWeightGradient(products_, w.order(), w.in(), w.out(), rows, x, dy, dy_stride,
                                      accumulate, dw, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                                  float* dbias) {
  Queue("gradient of a bias",
        [&] { return cuda::BiasGradient(rows, width, dy, dy_stride, dbias, *stream_); });
}

template <typename T>
void CudaBackend<T>::ActivationBackward(kernels::Activation activation, int64_t n, const T* dy,
                                        const T* pre, T* dx) {
  Queue("activation backward",
        [&] { return cuda::ActivationBackward(activation, n, dy, pre, dx, *stream_); });
}

template <typename T>
void CudaBackend<T>::AttentionForward(const kernels::AttentionShape& shape,
                                      const kernels::AttentionOperands<const T>& in, float p,
                                      const kernels::DropoutKey& key, T* out, float* log_sum_exp) {
  Queue("attention forward",
        [&] { return cuda::AttentionForward(shape, in, p, key, out, log_sum_exp, *stream_); });
}

template <typename T>
void CudaBackend<T>::AttentionBackward(const kernels::AttentionShape& shape, const T* dout,
                                       const kernels::AttentionOperands<const T>& in, const T* out,
                                       const float* log_sum_exp, float p,
                                       const kernels::DropoutKey& key,
                                       const kernels::AttentionOperands<T>& gradient) {
  Queue("attention backward", [&] {
    return cuda::AttentionBackward(shape, dout, in, out, log_sum_exp, p, key, gradient, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                                      const float* beta, T* y, float* mean, float* rstd) {
  Queue("layer norm forward", [&] {
    return cuda::LayerNormForward(rows, width, x, gamma, beta, y, mean, rstd, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width,
                                              const T* x, const T* residual, float p,
                                              const kernels::DropoutKey& key, const float* gamma,
                                              const float* beta, T* sum, T* y, float* mean,
                                              float* rstd) {
  Queue("residual and layer norm forward", [&] {
    return cuda::ResidualLayerNormForward<T>(samples, seq, width, x, /*bias=*/nullptr, residual, p,
                                             key, gamma, beta, sum, y, mean, rstd, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::LayerNormBackward(int64_t rows, int64_t width, const T* dy, const T* x,
                                       const float* gamma, const float* mean, const float* rstd,
                                       bool accumulate, T* dx, float* dgamma, float* dbeta) {
  Queue("layer norm backward", [&] {
    return cuda::LayerNormBackward(rows, width, dy, x, gamma, mean, rstd, accumulate, dx, dgamma,
                                   dbeta, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x,
                                const T* residual, float p, const kernels::DropoutKey& key, T* y) {
  Queue("dropout forward", [&] {
    return cuda::DropoutAdd(samples, elements_per_sample, x, residual, p, key, y, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy,
                                     float p, const kernels::DropoutKey& key, T* dx) {
  Queue("dropout backward", [&] {
    return cuda::DropoutBackward(samples, elements_per_sample, dy, p, key, dx, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::EmbeddingForward(int64_t samples, int64_t seq, int64_t width,
                                      const int32_t* tokens, const float* wte, const float* wpe,
                                      T* out) {
  Queue("embedding forward", [&] {
    return cuda::EmbeddingForward(samples, seq, width, tokens, wte, wpe, out, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::EmbeddingForward(int64_t samples, int64_t seq, int64_t width,
                                      const int32_t* tokens, const Bf16* wte, const Bf16* wpe,
                                      T* out) {
  if constexpr (std::is_same_v<T, Bf16>) {
    Queue("embedding forward", [&] {
      return cuda::EmbeddingForward(samples, seq, width, tokens, wte, wpe, out, *stream_);
    });
  } else {
    TUG_CHECK(false) << "bf16 weights of a model of floats";
  }
}

template <typename T>
void CudaBackend<T>::EmbeddingBackward(int64_t samples, int64_t seq, int64_t width,
                                       const int32_t* tokens, const T* dout, float* dwte,
                                       float* dwpe) {
  Queue("embedding backward", [&] {
    return cuda::EmbeddingBackward(samples, seq, width, tokens, dout, dwte, dwpe, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::CrossEntropy(int64_t rows, int64_t vocab, const float* logits,
                                  const int32_t* targets, const kernels::Objective& objective,
                                  T* gradient, float* losses, uint8_t* correct) {
  Queue("cross-entropy", [&] {
    return cuda::CrossEntropy(rows, vocab, LogitsStride(vocab), logits, targets, objective,
                              gradient, losses, correct, *stream_);
  });
}

template <typename T>
void CudaBackend<T>::CrossEntropyLoss(int64_t rows, int64_t vocab, const float* logits,
                                      const int32_t* targets, float* losses, uint8_t* correct) {
  Queue("cross-entropy", [&] {
    return cuda::CrossEntropyLoss(rows, vocab, LogitsStride(vocab), logits, targets, losses,
                                  correct, *stream_);
  });
}

template class CudaBackend<float>;
template class CudaBackend<Bf16>;

}  // namespace tug
