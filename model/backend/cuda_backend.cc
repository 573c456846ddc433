// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/cuda/activation_cuda.h"
#include "kernels/cuda/attention/attention_cuda.h"
#include "kernels/cuda/bf16_cast_cuda.h"
#include "kernels/cuda/bias_cuda.h"
#include "kernels/cuda/cross_entropy_cuda.h"
#include "kernels/cuda/dropout_cuda.h"
#include "kernels/cuda/embedding_cuda.h"
#include "kernels/cuda/layernorm_cuda.h"

namespace tug {
namespace {

namespace cuda = kernels::cuda;
using kernels::Bf16;

constexpr size_t kFetchBytes = size_t{1} << 20;  // per copy to the host
constexpr size_t kLine = 64;                     // bytes; alignment of an array of inputs

size_t InputBytes(std::span<const int32_t> array) {
  return (array.size_bytes() + kLine - 1) / kLine * kLine;
}

}  // namespace

template <typename T>
class CudaBackend<T>::Matrix final : public WeightMatrix<T> {
 public:
  Matrix(CudaBackend& backend, int64_t in, int64_t out, kernels::WeightOrder order)
      : WeightMatrix<T>(in, out, order), backend_(backend) {}

  void Bind(const float* w) override {
    if constexpr (std::is_same_v<T, float>) {
      BindInPlace(w);
    } else {
      BindCopy(w);
    }
  }
  void Bind(const Bf16* w) override {
    if constexpr (std::is_same_v<T, Bf16>) {
      BindInPlace(w);
    } else {
      TUG_CHECK(false) << "bf16 weights passed to an FP32 model";
    }
  }
  void Release() override {
    data_ = nullptr;
    copy_.reset();
    bias_.reset();
    backend_.graphs_.Forget();  // their addresses will not recur
  }
  uint64_t copy_bytes() const override { return BytesOf(copy_) + BytesOf(bias_); }

  // `matrix`: made by this backend.
  static const Matrix& Of(const WeightMatrix<T>& matrix) {
    return static_cast<const Matrix&>(matrix);
  }
  // Weights in the form that products take.
  cuda::LinearWeights<T> weights() const { return {this->in(), this->out(), this->order(), data_}; }
  // Returns `bias` in T; rounds it before the first product after a Bind.
  const T* Rounded(const float* bias) const {
    if constexpr (std::is_same_v<T, float>) {
      return bias;
    } else {
      if (bias == nullptr || !Have(bias_, this->out())) return nullptr;
      if (std::exchange(bias_is_new_, false)) Round(bias, *bias_, this->out());
      return bias_->template As<T>();
    }
  }

 private:
  static uint64_t BytesOf(const std::optional<cuda::DeviceBuffer>& buffer) {
    return buffer.has_value() ? buffer->size_bytes() : 0;
  }
  void BindInPlace(const T* w) {
    data_ = w;
    bias_is_new_ = true;
  }
  void BindCopy(const float* w) {
    bias_is_new_ = true;
    const int64_t elements = this->in() * this->out();
    if (!Have(copy_, elements)) return;
    Round(w, *copy_, elements);
    data_ = copy_->template As<T>();
  }
  // Allocates at once, so that operations queued later can take the address as an argument. False
  // after an error; then nothing is queued.
  bool Have(std::optional<cuda::DeviceBuffer>& buffer, int64_t elements) const {
    if (buffer.has_value()) return true;
    backend_.Do("copy of weights", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(buffer,
                       cuda::DeviceBuffer::Create(static_cast<size_t>(elements) * sizeof(T)));
      return absl::OkStatus();
    });
    return buffer.has_value();
  }
  void Round(const float* from, const cuda::DeviceBuffer& to, int64_t elements) const {
    backend_.Operate(
        "copy of weights",
        [stream = &backend_.stream_](const auto&... a) {
          return cuda::Bf16FromFloat(a..., *stream);
        },
        from, to.As<Bf16>(), elements);
  }

  CudaBackend& backend_;
  const T* data_ = nullptr;
  std::optional<cuda::DeviceBuffer> copy_;  // bf16 copy of bound floats
  // Mutable, since products take constant matrices.
  mutable std::optional<cuda::DeviceBuffer> bias_;
  mutable bool bias_is_new_ = true;
};

template <typename T>
absl::StatusOr<std::unique_ptr<CudaBackend<T>>> CudaBackend<T>::Create(
    std::shared_ptr<DeviceQueue> queue) {
  RETURN_IF_ERROR(cuda::UseDevice(queue->device));
  ASSIGN_OR_RETURN(cuda::MatMulHandle products, cuda::MatMulHandle::Create());
  ASSIGN_OR_RETURN(cuda::PinnedBuffer fetched, cuda::PinnedBuffer::Create(kFetchBytes));
  ASSIGN_OR_RETURN(cuda::Event one, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event other, cuda::Event::Create());
  return std::unique_ptr<CudaBackend>(
      new CudaBackend(std::move(queue), std::move(products), std::move(fetched),
                      {Staging{.copied = std::move(one)}, Staging{.copied = std::move(other)}}));
}

template <typename T>
CudaBackend<T>::CudaBackend(std::shared_ptr<DeviceQueue> queue, cuda::MatMulHandle products,
                            cuda::PinnedBuffer fetched, std::array<Staging, 2> staging)
    : queue_(std::move(queue)),
      stream_(queue_->stream),
      products_(std::move(products)),
      fetched_(std::move(fetched)),
      graphs_(*queue_),
      staging_(std::move(staging)) {}

template <typename T>
CudaBackend<T>::~CudaBackend() {
  stream_.Synchronize().IgnoreError();
}

template <typename T>
void CudaBackend<T>::Together(absl::FunctionRef<void()> operations) {
  collects_ = true;
  operations();
  collects_ = false;
  if (status_.ok()) status_ = OnDevice([&] { return graphs_.Queue(collected_); });
  collected_.Clear();
}

template <typename T>
absl::StatusOr<std::shared_ptr<std::byte>> CudaBackend<T>::Allocate(size_t size_bytes,
                                                                    absl::string_view what) {
  std::shared_ptr<cuda::DeviceBuffer> buffer;
  Do(what, [&]() -> absl::Status {
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
  // After an error the arrays are never read, so any address will do.
  std::array<const int32_t*, kInputs> loaded;
  for (size_t i = 0; i < kInputs; ++i) {
    loaded[i] = arrays[i].empty() ? nullptr : arrays[i].data();
  }
  TUG_CHECK(!collects_) << "inputs loaded inside a group of queued operations";
  Do("arrays of a micro-batch", [&] { return QueueInputs(arrays, loaded); });
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
  RETURN_IF_ERROR(cuda::CopyToDeviceAsync(inputs_->data(), staging.memory->data(), bytes, stream_));
  return staging.copied.Record(stream_);
}

template <typename T>
void CudaBackend<T>::FillZero(void* to, size_t size_bytes) {
  Operate(
      "zeros", [this](const auto&... a) { return cuda::FillZeroAsync(a..., stream_); }, to,
      size_bytes);
}

template <typename T>
void CudaBackend<T>::CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride,
                              T* to, int64_t to_stride) {
  const auto bytes = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(T); };
  Operate(
      "copy of rows",
      [this](const auto&... a) { return cuda::CopyRowsOnDeviceAsync(a..., stream_); }, to,
      bytes(to_stride), from, bytes(from_stride), bytes(width), static_cast<size_t>(rows));
}

template <typename T>
void CudaBackend<T>::Fetch(void* host, const void* from, size_t size_bytes) {
  TUG_CHECK(!collects_) << "a copy to the host inside a group of queued operations";
  Do("copy to the host", [&]() -> absl::Status {
    if (size_bytes == 0) return stream_.Synchronize();
    for (size_t offset = 0; offset < size_bytes; offset += fetched_.size_bytes()) {
      const size_t bytes = std::min(size_bytes - offset, fetched_.size_bytes());
      RETURN_IF_ERROR(cuda::CopyToHostAsync(
          fetched_.data(), static_cast<const std::byte*>(from) + offset, bytes, stream_));
      RETURN_IF_ERROR(stream_.Synchronize());
      std::memcpy(static_cast<std::byte*>(host) + offset, fetched_.data(), bytes);
    }
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status CudaBackend<T>::Synchronize() {
  TUG_CHECK(!collects_) << "a wait inside a group of queued operations";
  const absl::Status done = stream_.Synchronize();  // also after an error
  Do("queued operations", [&] { return done; });
  return status_;
}

template <typename T>
std::unique_ptr<WeightMatrix<T>> CudaBackend<T>::NewMatrix(int64_t in, int64_t out,
                                                           kernels::WeightOrder order) {
  return std::make_unique<Matrix>(*this, in, out, order);
}

template <typename T>
void CudaBackend<T>::FloatFromBf16(const Bf16* src, float* dst, int64_t n) {
  Operate(
      "widening", [this](const auto&... a) { return cuda::FloatFromBf16(a..., stream_); }, src, dst,
      n);
}

template <typename T>
void CudaBackend<T>::LinearForward(const WeightMatrix<T>& w,
                                   const kernels::LinearForwardArgs<T>& args) {
  const Matrix& matrix = Matrix::Of(w);
  const kernels::LinearForwardArgs<T, T, T> rounded = {args.rows, args.x, matrix.Rounded(args.bias),
                                                       args.y, args.y_stride};
  Operate(
      "linear layer",
      [this](const auto&... a) { return cuda::LinearForward(products_, a..., stream_); },
      matrix.weights(), rounded);
}

template <typename T>
void CudaBackend<T>::LogitsForward(const WeightMatrix<T>& w,
                                   const kernels::LinearForwardArgs<T, float>& args) {
  Operate(
      "logits", [this](const auto&... a) { return cuda::LinearForward(products_, a..., stream_); },
      Matrix::Of(w).weights(), args);
}

template <typename T>
int64_t CudaBackend<T>::LogitsStride(int64_t columns) const {
  return (columns + kGpuLogitsStep - 1) / kGpuLogitsStep * kGpuLogitsStep;
}

template <typename T>
void CudaBackend<T>::LinearActivationForward(const WeightMatrix<T>& w,
                                             const kernels::LinearActivationForwardArgs<T>& args) {
  const Matrix& matrix = Matrix::Of(w);
  const kernels::LinearActivationForwardArgs<T, T> rounded = {
      args.rows, args.x, matrix.Rounded(args.bias), args.activation, args.pre, args.y};
  Operate(
      "linear layer with activation",
      [this](const auto&... a) { return cuda::LinearActivationForward(products_, a..., stream_); },
      matrix.weights(), rounded);
}

template <typename T>
void CudaBackend<T>::LinearInputGradient(const WeightMatrix<T>& w,
                                         const kernels::LinearInputGradientArgs<T>& args) {
  Operate(
      "input gradient of a linear layer",
      [this](const auto&... a) { return cuda::LinearInputGradient(products_, a..., stream_); },
      Matrix::Of(w).weights(), args);
}

template <typename T>
void CudaBackend<T>::LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) {
  Operate(
      "weight gradient of a linear layer",
      [this](const auto& a) { return cuda::LinearWeightGradient(products_, a, stream_); }, args);
}

template <typename T>
void CudaBackend<T>::BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                                  float* dbias) {
  Operate(
      "gradient of a bias", [this](const auto&... a) { return cuda::BiasGradient(a..., stream_); },
      rows, width, dy, dy_stride, dbias);
}

template <typename T>
void CudaBackend<T>::ActivationBackward(kernels::Activation activation, int64_t n, const T* dy,
                                        const T* pre, T* dx) {
  Operate(
      "activation backward",
      [this](const auto&... a) { return cuda::ActivationBackward(a..., stream_); }, activation, n,
      dy, pre, dx);
}

template <typename T>
void CudaBackend<T>::AttentionForward(const kernels::AttentionForwardArgs<T>& args) {
  Operate(
      "attention forward", [this](const auto& a) { return cuda::AttentionForward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::AttentionBackward(const kernels::AttentionBackwardArgs<T>& args) {
  Operate(
      "attention backward", [this](const auto& a) { return cuda::AttentionBackward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::LayerNormForward(const kernels::LayerNormForwardArgs<T>& args) {
  Operate(
      "layer norm forward", [this](const auto& a) { return cuda::LayerNormForward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::ResidualLayerNormForward(
    const kernels::ResidualLayerNormForwardArgs<T>& args) {
  Operate(
      "residual and layer norm forward",
      [this](const auto& a) { return cuda::ResidualLayerNormForward(a, stream_); }, args);
}

template <typename T>
void CudaBackend<T>::LayerNormBackward(const kernels::LayerNormBackwardArgs<T>& args) {
  Operate(
      "layer norm backward", [this](const auto& a) { return cuda::LayerNormBackward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::DropoutAdd(const kernels::DropoutAddArgs<T>& args) {
  Operate(
      "dropout", [this](const auto& a) { return cuda::DropoutAdd(a, stream_); }, args);
}

template <typename T>
void CudaBackend<T>::EmbeddingForward(const kernels::EmbeddingForwardArgs<float, T>& args) {
  Operate(
      "embedding forward", [this](const auto& a) { return cuda::EmbeddingForward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::EmbeddingForward(const kernels::EmbeddingForwardArgs<Bf16, T>& args) {
  if constexpr (std::is_same_v<T, Bf16>) {
    Operate(
        "embedding forward", [this](const auto& a) { return cuda::EmbeddingForward(a, stream_); },
        args);
  } else {
    TUG_CHECK(false) << "bf16 weights passed to an FP32 model";
  }
}

template <typename T>
void CudaBackend<T>::EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) {
  Operate(
      "embedding backward", [this](const auto& a) { return cuda::EmbeddingBackward(a, stream_); },
      args);
}

template <typename T>
void CudaBackend<T>::CrossEntropy(const kernels::CrossEntropyArgs<T>& args) {
  Operate(
      "cross-entropy", [this](const auto& a) { return cuda::CrossEntropy(a, stream_); }, args);
}

template class CudaBackend<float>;
template class CudaBackend<Bf16>;

}  // namespace tug
