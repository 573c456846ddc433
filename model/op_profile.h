// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_OP_PROFILE_H_
#define TUG_MODEL_OP_PROFILE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tug {

// Kinds of operations by which a model's time is broken down.
enum class Op {
  kPacking,                // weights into the products' order
  kEmbedding,              // forward and backward
  kProductForward,         // of the layers: y = x W
  kProductInputGradient,   // dx = dy W^T
  kProductWeightGradient,  // dW = x^T dy
  kAttentionForward,
  kAttentionBackward,
  kLayerNorm,   // forward and backward, with the residual sum before it
  kActivation,  // backward; in the forward pass it is part of the product
  kResidual,    // separate dropout and residual sums
  kBiasGradient,
  kHeadProducts,  // all three products of the head
  kLoss,          // cross-entropy and its gradient
};
inline constexpr size_t kOps = static_cast<size_t>(Op::kLoss) + 1;
inline constexpr std::array<const char*, kOps> kOpNames = {"packing",
                                                           "embedding",
                                                           "products, forward",
                                                           "products, input gradient",
                                                           "products, weight gradient",
                                                           "attention, forward",
                                                           "attention, backward",
                                                           "LayerNorm + residual",
                                                           "activation, backward",
                                                           "dropout + residual",
                                                           "bias gradients",
                                                           "head, products",
                                                           "head, loss"};

// Work of an operation; 0: not counted.
struct OpWork {
  // FLOPs of products. Attention backward counts five, although kernels may compute two of them
  // twice.
  double flops = 0;
  // Bytes of arrays that must be read and written, for operations limited by memory.
  double bytes = 0;
};

// Memory work of arrays that together have `elements` elements of type T.
template <typename T>
OpWork MovedWork(int64_t elements) {
  return {.bytes = static_cast<double>(elements) * sizeof(T)};
}

// Time and work by kind of operation. This class measures host time between Begin and End;
// CudaOpProfile (model/backend/cuda_op_profile.h) measures GPU time. Owned by the compute thread.
class OpProfile {
 public:
  struct Entry {
    std::chrono::nanoseconds time{0};
    OpWork work;
  };

  virtual ~OpProfile() = default;
  // Call around each operation; operations do not nest.
  virtual void Begin() { begin_ = std::chrono::steady_clock::now(); }
  virtual void End(Op op, const OpWork& work) {
    Add(op, std::chrono::steady_clock::now() - begin_, work);
  }

  const std::array<Entry, kOps>& entries() const { return entries_; }
  void Clear() { entries_ = {}; }

 protected:
  void Add(Op op, std::chrono::nanoseconds time, const OpWork& work) {
    Entry& entry = entries_[static_cast<size_t>(op)];
    entry.time += time;
    entry.work.flops += work.flops;
    entry.work.bytes += work.bytes;
  }

 private:
  std::chrono::steady_clock::time_point begin_;
  std::array<Entry, kOps> entries_ = {};
};

// Adds its lifetime to a profile; does nothing if that is null.
class OpTimer {
 public:
  OpTimer(OpProfile* profile, Op op, const OpWork& work = {})
      : profile_(profile), op_(op), work_(work) {
    if (profile_ != nullptr) profile_->Begin();
  }
  ~OpTimer() {
    if (profile_ != nullptr) profile_->End(op_, work_);
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  OpProfile* const profile_;
  const Op op_;
  const OpWork work_;
};

}  // namespace tug

#endif  // TUG_MODEL_OP_PROFILE_H_
