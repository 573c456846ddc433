// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/memory/lease.h"
#include "kernels/bias.h"

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
      TUG_CHECK(false) << "bf16 weights passed to an FP32 model";
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

// In the order of model/backend.h.

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
void CpuBackend<T>::LinearForward(const WeightMatrix<T>& w,
                                  const kernels::LinearForwardArgs<T>& args) {
  kernels::LinearForward(pool_, WeightsOf(w), args);
}

template <typename T>
void CpuBackend<T>::LogitsForward(const WeightMatrix<T>& w,
                                  const kernels::LinearForwardArgs<T, float>& args) {
  kernels::LinearForward(pool_, WeightsOf(w), args);
}

template <typename T>
void CpuBackend<T>::LinearActivationForward(const WeightMatrix<T>& w,
                                            const kernels::LinearActivationForwardArgs<T>& args) {
  kernels::LinearActivationForward(pool_, WeightsOf(w), args);
}

template <typename T>
void CpuBackend<T>::LinearInputGradient(const WeightMatrix<T>& w,
                                        const kernels::LinearInputGradientArgs<T>& args) {
  kernels::LinearInputGradient(pool_, WeightsOf(w), args);
}

template <typename T>
void CpuBackend<T>::LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) {
  kernels::LinearWeightGradient(pool_, args);
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
void CpuBackend<T>::AttentionForward(const kernels::AttentionForwardArgs<T>& args) {
  kernels::AttentionForward(pool_, args);
}

template <typename T>
void CpuBackend<T>::AttentionBackward(const kernels::AttentionBackwardArgs<T>& args) {
  kernels::AttentionBackward(pool_, args);
}

template <typename T>
void CpuBackend<T>::LayerNormForward(const kernels::LayerNormForwardArgs<T>& args) {
  kernels::LayerNormForward(pool_, args);
}

template <typename T>
void CpuBackend<T>::ResidualLayerNormForward(const kernels::ResidualLayerNormForwardArgs<T>& args) {
  kernels::ResidualLayerNormForward(pool_, args);
}

template <typename T>
void CpuBackend<T>::LayerNormBackward(const kernels::LayerNormBackwardArgs<T>& args) {
  kernels::LayerNormBackward(pool_, args);
}

template <typename T>
void CpuBackend<T>::DropoutAdd(const kernels::DropoutAddArgs<T>& args) {
  kernels::DropoutAdd(pool_, args);
}

template <typename T>
void CpuBackend<T>::EmbeddingForward(const kernels::EmbeddingForwardArgs<float, T>& args) {
  kernels::EmbeddingForward(pool_, args);
}

template <typename T>
void CpuBackend<T>::EmbeddingForward(const kernels::EmbeddingForwardArgs<kernels::Bf16, T>& args) {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    kernels::EmbeddingForward(pool_, args);
  } else {
    TUG_CHECK(false) << "bf16 weights passed to an FP32 model";
  }
}

template <typename T>
void CpuBackend<T>::EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) {
  kernels::EmbeddingBackward(pool_, args);
}

template <typename T>
void CpuBackend<T>::CrossEntropy(const kernels::CrossEntropyArgs<T>& args) {
  kernels::CrossEntropy(pool_, args);
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
