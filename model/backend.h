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

// A weight matrix as a backend's products want it: packed, or a view of what was bound. Made by
// Backend::NewMatrix, used with that backend only.
template <typename T>
class WeightMatrix {
 public:
  virtual ~WeightMatrix() = default;

  // New weights, in the order of `order()`, in the backend's memory. They stay the caller's and
  // must live until the next Bind or Release.
  virtual void Bind(const float* w) = 0;
  virtual void Bind(const kernels::Bf16* w) = 0;  // T = Bf16
  virtual void Release() = 0;
  // Of copies, at present.
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

// On a GPU rows of logits begin at multiples of so many elements, 16 bytes of Bf16, which is what
// products and vectors like.
inline constexpr int64_t kGpuLogitsStep = 8;
// On a GPU gradients of logits in bf16 may take so many bytes at a time: an 80th of the memory of
// an H100, a 16th of the 16 GB of small ones.
inline constexpr int64_t kGpuLogitsGradientBytes = int64_t{1} << 30;

// What computes a model: the operations that blocks are made of, and memory for them. Blocks are
// the same whatever computes them. Shapes, requirements and results of operations are those of the
// CPU kernels with the same name (kernels/*.h), whose thread pool the backend has; all pointers are
// to memory of the backend.
//
// A backend may only queue what it is given, and do it in the order given: what the host may read
// is what Fetch gave it. The first error stays, of an operation or of memory: nothing is queued
// behind it, what was to be written is not, and `status` has it.
//
// T: of activations and their gradients, float or kernels::Bf16. For one thread at a time. Matrices
// and memory go before the backend does.
template <typename T>
class Backend {
 public:
  virtual ~Backend() = default;

  // ---- memory ----

  // Freed with its last owner, after what uses it is done; boundaries of at least 64 bytes;
  // unwritten. RESOURCE_EXHAUSTED names `what` it is for, the bytes wanted and those there are.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t size_bytes,
                                                              absl::string_view what) = 0;

  // The arrays of a micro-batch where operations read them; nullptr: an empty one. Valid until the
  // next LoadInputs, but no longer than the host must keep the arrays of the batch (MicroBatch).
  struct Inputs {
    const int32_t* tokens = nullptr;
    const int32_t* lengths = nullptr;
    const int32_t* decoder_tokens = nullptr;
    const int32_t* targets = nullptr;
  };
  virtual Inputs LoadInputs(const MicroBatch& batch) = 0;

  virtual void FillZero(void* to, size_t size_bytes) = 0;
  // Rows of `width` elements, `from_stride` and `to_stride` elements apart.
  virtual void CopyRows(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                        int64_t to_stride) = 0;
  // To the host's memory; waits for all that was queued before.
  virtual void Fetch(void* host, const void* from, size_t size_bytes) = 0;
  // Calls `operations`, which may be queued all together when it returns. Among them there is
  // neither a Fetch nor a LoadInputs.
  virtual void Together(absl::FunctionRef<void()> operations) { operations(); }

  // OK, or the first error so far of what is known to be done or could not be queued.
  virtual absl::Status status() const = 0;
  // Waits for all that is queued.
  virtual absl::Status Synchronize() = 0;

  // ---- weights ----

  virtual std::unique_ptr<WeightMatrix<T>> NewMatrix(int64_t in, int64_t out,
                                                     kernels::WeightOrder order) = 0;
  virtual void FloatFromBf16(const kernels::Bf16* src, float* dst, int64_t n) = 0;

  // ---- linear layers ----

  // A bias given with w has the same values until the next Bind of w. Rows of y and dy are w.out()
  // elements apart, those of logits and their gradients LogitsStride(w.out()).
  virtual void LinearForward(const WeightMatrix<T>& w,
                             const kernels::LinearForwardArgs<T>& args) = 0;
  virtual void LogitsForward(const WeightMatrix<T>& w,
                             const kernels::LinearForwardArgs<T, float>& args) = 0;
  // Elements from one row of logits, or of their gradient, to the next: at least `columns`.
  virtual int64_t LogitsStride(int64_t columns) const = 0;
  // Of gradients of logits that are in memory at once, the most; 0: those of one chunk of logits
  // (HeadChunkRows). More of them are fewer times that the head's whole gradient is read and
  // written.
  virtual int64_t LogitsGradientBytes() const = 0;
  virtual void LinearActivationForward(const WeightMatrix<T>& w,
                                       const kernels::LinearActivationForwardArgs<T>& args) = 0;
  virtual void LinearInputGradient(const WeightMatrix<T>& w,
                                   const kernels::LinearInputGradientArgs<T>& args) = 0;
  virtual void LinearWeightGradient(const kernels::LinearWeightGradientArgs<T>& args) = 0;
  // `dy_stride`: as above, of a layer with `width` outputs.
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
  // T = Bf16.
  virtual void EmbeddingForward(const kernels::EmbeddingForwardArgs<kernels::Bf16, T>& args) = 0;
  virtual void EmbeddingBackward(const kernels::EmbeddingBackwardArgs<T>& args) = 0;
  // Rows are LogitsStride(vocab) elements apart.
  virtual void CrossEntropy(const kernels::CrossEntropyArgs<T>& args) = 0;
};

// A device that models are computed on.
class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;

  // For one model each. Errors: those of making what the device needs for it.
  virtual absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() = 0;
  virtual absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_H_
