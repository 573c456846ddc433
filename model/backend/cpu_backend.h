// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_CPU_BACKEND_H_
#define TUG_MODEL_BACKEND_CPU_BACKEND_H_

#include "base/cpu/thread_pool.h"
#include "model/backend.h"

namespace tug {

// CPU kernels on a thread pool. Nothing is queued: an operation is done when it returns. Memory is
// host memory, LogitsStride(columns) is `columns`, and inputs of a micro-batch are read in place.
// There are no errors; lack of memory throws std::bad_alloc.
template <typename T>
class CpuBackend : public Backend<T> {
 public:
  // `pool` must outlive this.
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

  void LinearForward(const WeightMatrix<T>& w, const kernels::LinearForwardArgs<T>& args) override;
  void LogitsForward(const WeightMatrix<T>& w,
                     const kernels::LinearForwardArgs<T, float>& args) override;
  int64_t LogitsStride(int64_t columns) const override { return columns; }
  int64_t LogitsGradientBytes() const override { return 0; }
  void LinearActivationForward(const WeightMatrix<T>& w,
                               const kernels::LinearActivationForwardArgs<T>& args) override;
  void LinearInputGradient(const WeightMatrix<T>& w,
                           const kernels::LinearInputGradientArgs<T>& args) override;
  void LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) override;
  void BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                    float* dbias) override;
  void ActivationBackward(kernels::Activation activation, int64_t n, const T* dy, const T* pre,
                          T* dx) override;

  void AttentionForward(const kernels::AttentionForwardArgs<T>& args) override;
  void AttentionBackward(const kernels::AttentionBackwardArgs<T>& args) override;
  void LayerNormForward(const kernels::LayerNormForwardArgs<T>& args) override;
  void ResidualLayerNormForward(const kernels::ResidualLayerNormForwardArgs<T>& args) override;
  void LayerNormBackward(const kernels::LayerNormBackwardArgs<T>& args) override;
  void DropoutAdd(const kernels::DropoutAddArgs<T>& args) override;

  void EmbeddingForward(const kernels::EmbeddingForwardArgs<float, T>& args) override;
  void EmbeddingForward(const kernels::EmbeddingForwardArgs<kernels::Bf16, T>& args) override;
  void EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) override;
  void CrossEntropy(const kernels::CrossEntropyArgs<T>& args) override;

 private:
  ThreadPool& pool_;
};

// The CPU. `pool` must outlive the backends.
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

#endif  // TUG_MODEL_BACKEND_CPU_BACKEND_H_
