// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_H_
#define TUG_MODEL_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/linear.h"
#include "model/model.h"

namespace tug {

// A weight matrix in the form a backend's products need: packed, or a view of the bound weights.
// Made by Backend::NewMatrix; used only with that backend.
template <typename T>
class WeightMatrix {
 public:
  virtual ~WeightMatrix() = default;

  // Binds weights, in the backend's memory and in the order of `order()`. The caller owns them and
  // keeps them alive until the next Bind or Release.
  virtual void Bind(const float* w) = 0;
  virtual void Bind(const kernels::Bf16* w) = 0;  // T = Bf16 only
  virtual void Release() = 0;
  // Current size of copies of the weights.
  virtual uint64_t copy_bytes() const = 0;

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  kernels::WeightOrder order() const { return order_; }

 protected:
  WeightMatrix(int64_t in, int64_t out, kernels::WeightOrder order)
      : in_(in), out_(out), order_(order) {}

 private:
  const int64_t in_, out_;
  const kernels::WeightOrder order_;
};

// On a GPU, rows of logits start at multiples of this many elements (16 bytes of Bf16), which suits
// products and vector loads.
inline constexpr int64_t kGpuLogitsStep = 8;
// On a GPU, limit of bf16 gradients of logits in memory at once: an 80th of the memory of an H100,
// a 16th of the 16 GB of small GPUs.
inline constexpr int64_t kGpuLogitsGradientBytes = int64_t{1} << 30;

// Computes a model: provides memory and the operations that blocks are made of. Blocks are the same
// on every backend. Shapes, requirements and results of operations are those of the CPU kernels of
// the same name (kernels/*.h); the backend supplies their thread pool. All pointers are to the
// backend's memory.
//
// A backend may only queue operations, and executes them in order: the host may read only what
// Fetch has copied. The first error, of an operation or an allocation, stays: nothing is queued
// after it, its outputs are not written, and `status` returns it.
//
// T: type of activations and their gradients, float or kernels::Bf16. Used by one thread at a time.
// Matrices and memory must be destroyed before the backend.
template <typename T>
class Backend {
 public:
  virtual ~Backend() = default;

  // ---- memory ----

  // Uninitialized memory, aligned to at least 64 bytes. Freed with its last owner, once operations
  // that use it are done. RESOURCE_EXHAUSTED names the purpose `what`, the bytes wanted and the
  // bytes free.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                              absl::string_view what) = 0;

  // Arrays of a micro-batch in the backend's memory; nullptr: empty. Valid until the next
  // LoadInputs, and at most while the host must keep the arrays of the batch (MicroBatch).
  struct Inputs {
    const int32_t* tokens = nullptr;
    const int32_t* lengths = nullptr;
    const int32_t* decoder_tokens = nullptr;
    const int32_t* targets = nullptr;
  };
  virtual Inputs LoadInputs(const MicroBatch& batch) = 0;

  virtual void FillZero(void* to, size_t size_bytes) = 0;
  // Copies rows of `width` elements, `from_stride` and `to_stride` elements apart.
  virtual void CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                        int64_t to_stride) = 0;
  // Copies to host memory. Waits for all operations queued before.
  virtual void Fetch(void* host, const void* from, size_t size_bytes) = 0;
  // Calls `operations`; they may be queued all at once when it returns. They must not contain Fetch
  // or LoadInputs.
  virtual void Together(absl::FunctionRef<void()> operations) { operations(); }

  // OK, or the first error among operations that are known to be done or could not be queued.
  virtual absl::Status status() const = 0;
  // Waits for all queued operations.
  virtual absl::Status Synchronize() = 0;

  // ---- weights ----

  virtual std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out,
                                                     kernels::WeightOrder order) = 0;
  virtual void FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) = 0;

  // ---- linear layers ----

  // A bias passed with w must keep its values until the next Bind of w. Rows of y and dy are
  // w.out() elements apart; rows of logits and their gradients LogitsStride(w.out()).
  virtual void LinearForward(const WeightMatrix<T>& w,
                             const kernels::LinearForwardArgs<T>& args) = 0;
  virtual void LogitsForward(const WeightMatrix<T>& w,
                             const kernels::LinearForwardArgs<T, float>& args) = 0;
  // Elements from one row of logits, or of their gradient, to the next; at least `columns`.
  virtual int64_t LogitsStride(int64_t columns) const = 0;
  // Limit of gradients of logits in memory at once; 0: those of one chunk of logits
  // (HeadChunkRows). A larger limit means fewer reads and writes of the head's whole gradient.
  virtual int64_t LogitsGradientBytes() const = 0;
  virtual void LinearActivationForward(const WeightMatrix<T>& w,
                                       const kernels::LinearActivationForwardArgs<T>& args) = 0;
  virtual void LinearInputGradient(const WeightMatrix<T>& w,
                                   const kernels::LinearInputGradientArgs<T>& args) = 0;
  virtual void LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) = 0;
  // `dy_stride`: as above, for a layer with `width` outputs.
  virtual void BiasGradient(int64_t rows, int64_t width, const T* dy, int64_t dy_stride,
                            float* dbias) = 0;
  virtual void ActivationBackward(kernels::Activation activation, int64_t n, const T* dy,
                                  const T* pre, T* dx) = 0;

  // ---- the rest of a layer ----

  virtual void AttentionForward(const kernels::AttentionForwardArgs<T>& args) = 0;
  virtual void AttentionBackward(const kernels::AttentionBackwardArgs<T>& args) = 0;
  virtual void LayerNormForward(const kernels::LayerNormForwardArgs<T>& args) = 0;
  virtual void ResidualLayerNormForward(const kernels::ResidualLayerNormForwardArgs<T>& args) = 0;
  virtual void LayerNormBackward(const kernels::LayerNormBackwardArgs<T>& args) = 0;
  virtual void DropoutAdd(const kernels::DropoutAddArgs<T>& args) = 0;

  // ---- both ends ----

  virtual void EmbeddingForward(const kernels::EmbeddingForwardArgs<float, T>& args) = 0;
  // T = Bf16 only.
  virtual void EmbeddingForward(const kernels::EmbeddingForwardArgs<kernels::Bf16, T>& args) = 0;
  virtual void EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) = 0;
  // Rows are LogitsStride(vocab) elements apart.
  virtual void CrossEntropy(const kernels::CrossEntropyArgs<T>& args) = 0;
};

// A device that computes models.
class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;

  // Each backend is for one model. Errors: those of allocating the device's resources.
  virtual absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() = 0;
  virtual absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_H_
