#ifndef TUG_MODEL_CPU_BACKEND_H_
#define TUG_MODEL_CPU_BACKEND_H_

#include "base/thread_pool.h"
#include "model/backend.h"

namespace tug {

// The kernels of the CPU on a thread pool. Nothing is queued: an operation is done when it returns.
// Its memory is the host's, LogitsStride(columns) is `columns`, and the inputs of a micro-batch are
// read where they are. There are no errors; where the host's memory ends, std::bad_alloc.
template <typename T>
class CpuBackend : public Backend<T> {
 public:
  // `pool` outlives this.
  explicit CpuBackend(ThreadPool& pool) : pool_(pool) {}

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                      absl::string_view what) override;
  typename Backend<T>::Inputs LoadInputs(const MicroBatch& batch) override;
  void FillZero(void* to, size_t size_bytes) override;
  void CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                int64_t to_stride) override;
  void Fetch(void* host, const void* from, size_t size_bytes) override;
  absl::Status status() const override { return absl::OkStatus(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

  std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out,
                                             kernels::WeightOrder order) override;
  void FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) override;

  void LinearForward(const WeightMatrix<T>& w, int64_t rows, const T* x, const float* bias,
                     T* y) override;
  void LogitsForward(const WeightMatrix<T>& w, int64_t rows, const T* x, const float* bias,
                     float* y) override;
  int64_t LogitsStride(int64_t columns) const override { return columns; }
  int64_t LogitsGradientBytes() const override { return 0; }
  void LinearActivationForward(const WeightMatrix<T>& w, int64_t rows, const T* x,
                               const float* bias, kernels::Activation activation, T* pre,
                               T* y) override;
  void LinearInputGradient(const WeightMatrix<T>& w, int64_t rows, const T* dy, int64_t dy_stride,
                           bool accumulate, T* dx) override;
  void LinearWeightGradient(const WeightMatrix<T>& w, int64_t rows, const T* x, const T* dy,
                            int64_t dy_stride, bool accumulate, float* dw) override;
  void BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                    float* dbias) override;
  void ActivationBackward(kernels::Activation activation, int64_t n, const T* dy, const T* pre,
                          T* dx) override;

  void AttentionForward(const kernels::AttentionShape& shape,
                        const kernels::AttentionOperands<const T>& in, float p,
                        const kernels::DropoutKey& key, T* out, float* log_sum_exp) override;
  void AttentionBackward(const kernels::AttentionShape& shape, const T* dout,
                         const kernels::AttentionOperands<const T>& in, const T* out,
                         const float* log_sum_exp, float p, const kernels::DropoutKey& key,
                         const kernels::AttentionOperands<T>& gradient) override;
  void LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                        const float* beta, T* y, float* mean, float* rstd) override;
  void ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width, const T* x,
                                const T* residual, float p, const kernels::DropoutKey& key,
                                const float* gamma, const float* beta, T* sum, T* y, float* mean,
                                float* rstd) override;
  void LayerNormBackward(int64_t rows, int64_t width, const T* dy, const T* x, const float* gamma,
                         const float* mean, const float* rstd, bool accumulate, T* dx,
                         float* dgamma, float* dbeta) override;
  void DropoutAdd(int64_t samples, int64_t elements_per_sample, const T* x, const T* residual,
                  float p, const kernels::DropoutKey& key, T* y) override;
  void DropoutBackward(int64_t samples, int64_t elements_per_sample, const T* dy, float p,
                       const kernels::DropoutKey& key, T* dx) override;

  void EmbeddingForward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                        const float* wte, const float* wpe, T* out) override;
  void EmbeddingForward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                        const kernels::Bf16* wte, const kernels::Bf16* wpe, T* out) override;
  void EmbeddingBackward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                         const T* dout, float* dwte, float* dwpe) override;
  void CrossEntropy(int64_t rows, int64_t vocab, const float* logits, const int32_t* targets,
                    const kernels::Objective& objective, T* gradient, float* losses,
                    uint8_t* correct) override;
  void CrossEntropyLoss(int64_t rows, int64_t vocab, const float* logits, const int32_t* targets,
                        float* losses, uint8_t* correct) override;

 private:
  ThreadPool& pool_;
};

// The CPU. `pool` outlives the backends.
class CpuDevice final : public ComputeDevice {
 public:
  explicit CpuDevice(ThreadPool& pool) : pool_(pool) {}

  absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() override;
  absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() override;

 private:
  ThreadPool& pool_;
};

extern template class CpuBackend<float>;
extern template class CpuBackend<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_CPU_BACKEND_H_
