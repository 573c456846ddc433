// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_QUEUED_BACKEND_H_
#define TUG_MODEL_BACKEND_QUEUED_BACKEND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/cpu/thread_pool.h"
#include "model/backend/cpu_backend.h"

namespace tug {

// For tests: counts and failures of a QueuedBackend.
struct QueueRecord {
  int64_t queued = 0;
  int64_t done = 0;
  int64_t fails_at = std::numeric_limits<int64_t>::max();    // failing operation, from 0
  size_t memory_bytes = std::numeric_limits<size_t>::max();  // free memory
};

// For tests: gives the CPU's bits, but uses all the freedom of the contract. Operations wait until
// Fetch or Synchronize, new memory is all NaNs, and rows of logits have kPadding extra elements.
template <typename T>
class QueuedBackend final : public Backend<T> {
 public:
  static constexpr int64_t kPadding = 3;

  // Both must outlive this.
  QueuedBackend(ThreadPool& pool, QueueRecord& record) : cpu_(pool), record_(record) {}

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                      absl::string_view what) override {
    if (size_bytes > record_.memory_bytes) {
      Fail(absl::ResourceExhaustedError(absl::StrCat("no memory for ", what, ": ", size_bytes,
                                                     " bytes requested, ", record_.memory_bytes,
                                                     " free")));
      return status_;
    }
    record_.memory_bytes -= size_bytes;
    absl::StatusOr<std::shared_ptr<std::byte>> memory = cpu_.Allocate(size_bytes, what);
    std::memset(memory->get(), 0xff, size_bytes);
    return memory;
  }
  typename Backend<T>::Inputs LoadInputs(const MicroBatch& batch) override {
    const auto load = [this](std::span<const int32_t> array) -> const int32_t* {
      if (array.empty()) return nullptr;
      return inputs_.emplace_back(array.begin(), array.end()).data();
    };
    return {.tokens = load(batch.tokens),
            .lengths = load(batch.lengths),
            .decoder_tokens = load(batch.decoder_tokens),
            .targets = load(batch.targets)};
  }
  void FillZero(void* to, size_t size_bytes) override {
    Queue([=, this] { cpu_.FillZero(to, size_bytes); });
  }
  void CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                int64_t to_stride) override {
    Queue([=, this] { cpu_.CopyRows(rows, width, from, from_stride, to, to_stride); });
  }
  void Fetch(void* host, const void* from, size_t size_bytes) override {
    if (Synchronize().ok()) cpu_.Fetch(host, from, size_bytes);
  }
  absl::Status status() const override { return status_; }
  absl::Status Synchronize() override {
    for (; !queue_.empty(); queue_.pop_front()) {
      if (record_.done == record_.fails_at) {
        Fail(absl::InternalError(absl::StrCat("operation ", record_.done, " failed")));
        break;
      }
      queue_.front()();
      ++record_.done;
    }
    return status_;
  }

  std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out,
                                             kernels::WeightOrder order) override {
    return std::make_unique<QueuedMatrix>(*this, in, out, order);
  }
  void FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) override {
    Queue([=, this] { cpu_.FloatFromBf16(src, dst, n); });
  }

  void LinearForward(const WeightMatrix<T>& w, const kernels::LinearForwardArgs<T>& args) override {
    Queue([=, this, &w = Of(w)] { cpu_.LinearForward(w, args); });
  }
  void LogitsForward(const WeightMatrix<T>& w,
                     const kernels::LinearForwardArgs<T, float>& args) override {
    Queue([=, this, &w = Of(w)] {
      std::vector<float> dense(static_cast<size_t>(args.rows * w.out()));
      cpu_.LogitsForward(w, {args.rows, args.x, args.bias, dense.data(), w.out()});
      for (int64_t row = 0; row < args.rows; ++row) {
        std::copy_n(dense.data() + row * w.out(), w.out(), args.y + row * args.y_stride);
      }
    });
  }
  int64_t LogitsStride(int64_t columns) const override { return columns + kPadding; }
  int64_t LogitsGradientBytes() const override { return kGpuLogitsGradientBytes; }
  void LinearActivationForward(const WeightMatrix<T>& w,
                               const kernels::LinearActivationForwardArgs<T>& args) override {
    Queue([=, this, &w = Of(w)] { cpu_.LinearActivationForward(w, args); });
  }
  void LinearInputGradient(const WeightMatrix<T>& w,
                           const kernels::LinearInputGradientArgs<T>& args) override {
    Queue([=, this, &w = Of(w)] {
      const std::vector<T> dy = Dense(args.rows, w.out(), args.dy_stride, args.dy);
      cpu_.LinearInputGradient(w, {args.rows, dy.data(), w.out(), args.accumulate, args.dx});
    });
  }
  void LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) override {
    Queue([=, this] {
      const std::vector<T> dy = Dense(args.rows, args.out, args.dy_stride, args.dy);
      kernels::LinearWeightGradientArgs<T> dense = args;
      dense.dy = dy.data();
      dense.dy_stride = args.out;
      cpu_.LinearWeightGradient(dense);
    });
  }
  void BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                    float* dbias) override {
    Queue([=, this] {
      cpu_.BiasGradient(rows, width, Dense(rows, width, dy_stride, dy).data(), width, dbias);
    });
  }
  void ActivationBackward(kernels::Activation activation, int64_t n, const T* dy, const T* pre,
                          T* dx) override {
    Queue([=, this] { cpu_.ActivationBackward(activation, n, dy, pre, dx); });
  }

  void AttentionForward(const kernels::AttentionForwardArgs<T>& args) override {
    Queue([=, this] { cpu_.AttentionForward(args); });
  }
  void AttentionBackward(const kernels::AttentionBackwardArgs<T>& args) override {
    Queue([=, this] { cpu_.AttentionBackward(args); });
  }
  void LayerNormForward(const kernels::LayerNormForwardArgs<T>& args) override {
    Queue([=, this] { cpu_.LayerNormForward(args); });
  }
  void ResidualLayerNormForward(const kernels::ResidualLayerNormForwardArgs<T>& args) override {
    Queue([=, this] { cpu_.ResidualLayerNormForward(args); });
  }
  void LayerNormBackward(const kernels::LayerNormBackwardArgs<T>& args) override {
    Queue([=, this] { cpu_.LayerNormBackward(args); });
  }
  void DropoutAdd(const kernels::DropoutAddArgs<T>& args) override {
    Queue([=, this] { cpu_.DropoutAdd(args); });
  }

  void EmbeddingForward(const kernels::EmbeddingForwardArgs<float, T>& args) override {
    Queue([=, this] { cpu_.EmbeddingForward(args); });
  }
  void EmbeddingForward(const kernels::EmbeddingForwardArgs<kernels::Bf16, T>& args) override {
    Queue([=, this] { cpu_.EmbeddingForward(args); });
  }
  void EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) override {
    Queue([=, this] { cpu_.EmbeddingBackward(args); });
  }
  void CrossEntropy(const kernels::CrossEntropyArgs<T>& args) override {
    Queue([=, this] { cpu_.CrossEntropy(args); });
  }

 private:
  class QueuedMatrix final : public WeightMatrix<T> {
   public:
    QueuedMatrix(QueuedBackend& backend, int64_t in, int64_t out, kernels::WeightOrder order)
        : WeightMatrix<T>(in, out, order),
          backend_(backend),
          matrix_(backend.cpu_.NewMatrix(in, out, order)) {}
    void Bind(const float* w) override {
      backend_.Queue([=, this] { matrix_->Bind(w); });
    }
    void Bind(const kernels::Bf16* w) override {
      backend_.Queue([=, this] { matrix_->Bind(w); });
    }
    void Release() override {
      backend_.Queue([this] { matrix_->Release(); });
    }
    uint64_t copy_bytes() const override { return matrix_->copy_bytes(); }
    const WeightMatrix<T>& matrix() const { return *matrix_; }

   private:
    QueuedBackend& backend_;
    const std::unique_ptr<WeightMatrix<T>> matrix_;
  };

  static const WeightMatrix<T>& Of(const WeightMatrix<T>& matrix) {
    return static_cast<const QueuedMatrix&>(matrix).matrix();
  }
  // Copies rows that are `stride` apart to rows without gaps.
  static std::vector<T> Dense(int64_t rows, int64_t columns, int64_t stride, const T* from) {
    std::vector<T> dense(static_cast<size_t>(rows * columns));
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(from + row * stride, columns, dense.data() + row * columns);
    }
    return dense;
  }

  void Queue(std::function<void()> operation) {
    if (!status_.ok()) return;
    queue_.push_back(std::move(operation));
    ++record_.queued;
  }
  void Fail(absl::Status error) {
    queue_.clear();
    if (status_.ok()) status_ = std::move(error);
  }

  CpuBackend<T> cpu_;
  QueueRecord& record_;
  std::deque<std::function<void()>> queue_;
  std::deque<std::vector<int32_t>> inputs_;  // of all passes so far
  absl::Status status_;
};

class QueuedDevice final : public ComputeDevice {
 public:
  // `pool` and this must outlive the backends.
  explicit QueuedDevice(ThreadPool& pool) : pool_(pool) {}

  absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() override {
    return std::make_unique<QueuedBackend<float>>(pool_, record_);
  }
  absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() override {
    return std::make_unique<QueuedBackend<kernels::Bf16>>(pool_, record_);
  }
  QueueRecord& record() { return record_; }

 private:
  ThreadPool& pool_;
  QueueRecord record_;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_QUEUED_BACKEND_H_
