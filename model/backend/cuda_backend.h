// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_CUDA_BACKEND_H_
#define TUG_MODEL_BACKEND_CUDA_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/toolkit/linear_cuda.h"
#include "kernels/cuda/toolkit/matmul_cuda.h"
#include "model/backend.h"
#include "model/backend/collected_pass.h"
#include "model/backend/device_queue.h"
#include "model/backend/pass_graphs.h"

namespace tug {

// Computes a model on a GPU: each operation is that of kernels/cuda/, queued on one stream. Arrays
// of a micro-batch and fetched results go through pinned memory; staging an array waits only for
// the copy made two micro-batches earlier. Errors name the operation or the purpose of the memory.
// A kernel fault is reported when a call waits for the stream.
template <typename T>
class CudaBackend final : public Backend<T> {
 public:
  using typename Backend<T>::Inputs;

  // `queue` is shared because models may outlive the device that made them. Errors: those of
  // kernels/cuda/device/device.h.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Create(std::shared_ptr<DeviceQueue> queue);
  // Waits for queued operations.
  ~CudaBackend() override;

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                      absl::string_view what) override;
  Inputs LoadInputs(const MicroBatch& batch) override;
  void FillZero(void* to, size_t size_bytes) override;
  void CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                int64_t to_stride) override;
  void Fetch(void* host, const void* from, size_t size_bytes) override;
  void Together(absl::FunctionRef<void()> operations) override;
  absl::Status status() const override { return status_; }
  absl::Status Synchronize() override;

  std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out,
                                             kernels::WeightOrder order) override;
  void FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) override;

  void LinearForward(const WeightMatrix<T>& w, const kernels::LinearForwardArgs<T>& args) override;
  void LogitsForward(const WeightMatrix<T>& w,
                     const kernels::LinearForwardArgs<T, float>& args) override;
  int64_t LogitsStride(int64_t columns) const override;
  int64_t LogitsGradientBytes() const override { return kGpuLogitsGradientBytes; }
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
  class Matrix;

  // Pinned memory where a micro-batch's arrays wait for their copy to the GPU.
  struct Staging {
    kernels::cuda::Event copied;
    std::optional<kernels::cuda::PinnedBuffer> memory;
  };
  static constexpr size_t kInputs = 4;  // number of arrays of a micro-batch

  CudaBackend(std::shared_ptr<DeviceQueue> queue, kernels::cuda::MatMulHandle products,
              kernels::cuda::PinnedBuffer fetched, std::array<Staging, 2> staging);

  // Calls `f` on the GPU, unless there was an error. Keeps its error, prefixed with `name`.
  template <typename F>
  void Do(absl::string_view name, F f) {
    if (!status_.ok()) return;
    const absl::Status status = OnDevice(f);
    if (status.ok()) return;
    status_ = absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
  }
  template <typename F>
  absl::Status OnDevice(F f) {
    absl::Status status = kernels::cuda::UseDevice(queue_->device);
    return status.ok() ? f() : status;
  }
  // Queues queue(arguments...) now, or with the others of Together. It must depend on no mutable
  // state except its arguments.
  template <typename Queue, typename... Arguments>
  void Operate(absl::string_view name, Queue queue, const Arguments&... arguments) {
    if (!collects_) return Do(name, [&] { return queue(arguments...); });
    if (status_.ok()) collected_.Add(name, queue, arguments...);
  }
  absl::Status QueueInputs(const std::array<std::span<const int32_t>, kInputs>& arrays,
                           std::array<const int32_t*, kInputs>& loaded);

  // Constant after construction.
  const std::shared_ptr<DeviceQueue> queue_;
  const kernels::cuda::Stream& stream_;
  kernels::cuda::MatMulHandle products_;
  const kernels::cuda::PinnedBuffer fetched_;

  absl::Status status_;
  bool collects_ = false;
  CollectedPass collected_;
  PassGraphs graphs_;
  std::array<Staging, 2> staging_;
  size_t next_staging_ = 0;
  std::optional<kernels::cuda::DeviceBuffer> inputs_;
};

extern template class CudaBackend<float>;
extern template class CudaBackend<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_CUDA_BACKEND_H_
