#ifndef TUG_MODEL_QUEUED_BACKEND_H_
#define TUG_MODEL_QUEUED_BACKEND_H_

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
#include "base/thread_pool.h"
#include "model/cpu_backend.h"

namespace tug {

// For tests: how the operations of a QueuedBackend go.
struct QueueRecord {
  int64_t queued = 0;
  int64_t done = 0;
  int64_t fails_at = std::numeric_limits<int64_t>::max();    // that operation, from 0
  size_t memory_bytes = std::numeric_limits<size_t>::max();  // free
};

// For tests: the CPU's bits from a backend that uses all the freedom of the contract. Operations
// wait until Fetch or Synchronize, memory is all NaNs when it is allocated, and rows of logits are
// kPadding elements apart.
template <typename T>
class QueuedBackend final : public Backend<T> {
 public:
  static constexpr int64_t kPadding = 3;

  // Both outlive this.
  QueuedBackend(ThreadPool& pool, QueueRecord& record) : cpu_(pool), record_(record) {}

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                      absl::string_view what) override {
    if (size_bytes > record_.memory_bytes) {
      Fail(absl::ResourceExhaustedError(absl::StrCat("no memory for ", what, ": ", size_bytes,
                                                     " bytes wanted, ", record_.memory_bytes,
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

  void LinearForward(const WeightMatrix<T>& w, int64_t rows, const T* x, const float* bias,
                     T* y) override {
    Queue([=, this, &w = Of(w)] { cpu_.LinearForward(w, rows, x, bias, y); });
  }
  void LogitsForward(const WeightMatrix<T>& w, int64_t rows, const T* x, const float* bias,
                     float* y) override {
    Queue([=, this, &w = Of(w)] {
      std::vector<float> dense(static_cast<size_t>(rows * w.out()));
      cpu_.LogitsForward(w, rows, x, bias, dense.data());
      Spread(rows, w.out(), dense.data(), y);
    });
  }
  int64_t LogitsStride(int64_t columns) const override { return columns + kPadding; }
  int64_t LogitsGradientBytes() const override { return kGpuLogitsGradientBytes; }
  void LinearActivationForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                               const float* bias, kernels::Activation activation, T* pre,
                               T* y) override {
    Queue([=, this, &w = Of(w)] {
      cpu_.LinearActivationForward(w, rows, x, bias, activation, pre, y);
    });
  }
  void LinearInputGradient(const WeightMatrix<T>& w, int64_t rows, const T* dy, int64_t dy_stride,
                           bool accumulate, T* dx) override {
    Queue([=, this, &w = Of(w)] {
      const std::vector<T> dense = Dense(rows, w.out(), dy_stride, dy);
      cpu_.LinearInputGradient(w, rows, dense.data(), w.out(), accumulate, dx);
    });
  }
  void LinearWeightGradient(const WeightMatrix<T>& w, int64_t rows, const T* x, const T* dy,
                            int64_t dy_stride, bool accumulate, float* dw) override {
    Queue([=, this, &w = Of(w)] {
      const std::vector<T> dense = Dense(rows, w.out(), dy_stride, dy);
      cpu_.LinearWeightGradient(w, rows, x, dense.data(), w.out(), accumulate, dw);
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

  void AttentionForward(const kernels::AttentionShape& shape,
                        const kernels::AttentionOperands<const T>& in, float p,
                        const kernels::DropoutKey& key, T* out, float* log_sum_exp) override {
    Queue([=, this] { cpu_.AttentionForward(shape, in, p, key, out, log_sum_exp); });
  }
  void AttentionBackward(const kernels::AttentionShape& shape, const T* dout,
                         const kernels::AttentionOperands<const T>& in, const T* out,
                         const float* log_sum_exp, float p, const kernels::DropoutKey& key,
                         const kernels::AttentionOperands<T>& gradient) override {
    Queue(
        [=, this] { cpu_.AttentionBackward(shape, dout, in, out, log_sum_exp, p, key, gradient); });
  }
  void LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                        const float* beta, T* y, float* mean, float* rstd) override {
    Queue([=, this] { cpu_.LayerNormForward(rows, width, x, gamma, beta, y, mean, rstd); });
  }
  void ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width, const T* x,
                                const T* residual, float p, const kernels::DropoutKey& key,
                                const float* gamma, const float* beta, T* sum, T* y, float* mean,
                                float* rstd) override {
    Queue([=, this] {
      cpu_.ResidualLayerNormForward(samples, seq, width, x, residual, p, key, gamma, beta, sum, y,
                                    mean, rstd);
    });
  }
  void LayerNormBackward(int64_t rows, int64_t width, const T* dy, const T* x, const float* gamma,
                         const float* mean, const float* rstd, bool accumulate, T* dx,
                         float* dgamma, float* dbeta) override {
    Queue([=, this] {
      cpu_.LayerNormBackward(rows, width, dy, x, gamma, mean, rstd, accumulate, dx, dgamma, dbeta);
    });
  }
  void DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x, const T* residual,
                  float p, const kernels::DropoutKey& key, T* y) override {
    Queue([=, this] { cpu_.DropoutAdd(samples, elements_per_sample, x, residual, p, key, y); });
  }
  void DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy, float p,
                       const kernels::DropoutKey& key, T* dx) override {
    Queue([=, this] { cpu_.DropoutBackward(samples, elements_per_sample, dy, p, key, dx); });
  }

  void EmbeddingForward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                        const float* wte, const float* wpe, T* out) override {
    Queue([=, this] { cpu_.EmbeddingForward(samples, seq, width, tokens, wte, wpe, out); });
  }
  void EmbeddingForward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                        const kernels::Bf16* wte, const kernels::Bf16* wpe, T* out) override {
    Queue([=, this] { cpu_.EmbeddingForward(samples, seq, width, tokens, wte, wpe, out); });
  }
  void EmbeddingBackward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                         const T* dout, float* dwte, float* dwpe) override {
    Queue([=, this] { cpu_.EmbeddingBackward(samples, seq, width, tokens, dout, dwte, dwpe); });
  }
  void CrossEntropy(int64_t rows, int64_t vocab, const float* logits, const int32_t* targets,
                    const kernels::Objective& objective, T* gradient, float* losses,
                    uint8_t* correct) override {
    Queue([=, this] {
      const std::vector<float> dense = Dense(rows, vocab, LogitsStride(vocab), logits);
      std::vector<T> dense_gradient(dense.size());
      cpu_.CrossEntropy(rows, vocab, dense.data(), targets, objective, dense_gradient.data(),
                        losses, correct);
      Spread(rows, vocab, dense_gradient.data(), gradient);
    });
  }
  void CrossEntropyLoss(int64_t rows, int64_t vocab, const float* logits, const int32_t* targets,
                        float* losses, uint8_t* correct) override {
    Queue([=, this] {
      const std::vector<float> dense = Dense(rows, vocab, LogitsStride(vocab), logits);
      cpu_.CrossEntropyLoss(rows, vocab, dense.data(), targets, losses, correct);
    });
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
  // Rows one after another, from rows `stride` apart; and from such to rows of logits.
  template <typename U>
  static std::vector<U> Dense(int64_t rows, int64_t columns, int64_t stride, const U* from) {
    std::vector<U> dense(static_cast<size_t>(rows * columns));
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(from + row * stride, columns, dense.data() + row * columns);
    }
    return dense;
  }
  template <typename U>
  void Spread(int64_t rows, int64_t columns, const U* dense, U* to) const {
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(dense + row * columns, columns, to + row * LogitsStride(columns));
    }
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
  std::deque<std::vector<int32_t>> inputs_;  // of all passes
  absl::Status status_;
};

class QueuedDevice final : public ComputeDevice {
 public:
  // `pool` outlives the backends, and so does this.
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

#endif  // TUG_MODEL_QUEUED_BACKEND_H_
