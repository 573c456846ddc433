#ifndef TUG_MODEL_OP_PROFILE_H_
#define TUG_MODEL_OP_PROFILE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tug {

// What a model's time is told apart by.
enum class Op {
  kPacking,                // weights into the products' order
  kEmbedding,              // both ways
  kProductForward,         // of the layers: y = x W
  kProductInputGradient,   // dx = dy W^T
  kProductWeightGradient,  // dW = x^T dy
  kAttentionForward,
  kAttentionBackward,
  kLayerNorm,   // both ways, with the residual sum in front
  kActivation,  // backward; forward it is part of the product
  kResidual,    // dropout and residual sums on their own
  kBiasGradient,
  kHeadProducts,  // all three of the head
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

// Time and floating-point operations of each kind. Owned by the compute thread.
class OpProfile {
 public:
  struct Entry {
    std::chrono::nanoseconds time{0};
    double flops = 0;  // of products
  };

  void Add(Op op, std::chrono::nanoseconds time, double flops) {
    Entry& entry = entries_[static_cast<size_t>(op)];
    entry.time += time;
    entry.flops += flops;
  }
  const std::array<Entry, kOps>& entries() const { return entries_; }
  void Clear() { entries_ = {}; }

 private:
  std::array<Entry, kOps> entries_ = {};
};

// Adds the time of its life to a profile, if there is one.
class OpTimer {
 public:
  OpTimer(OpProfile* profile, Op op, double flops = 0) : profile_(profile), op_(op), flops_(flops) {
    if (profile_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~OpTimer() {
    if (profile_ != nullptr) profile_->Add(op_, std::chrono::steady_clock::now() - begin_, flops_);
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  OpProfile* const profile_;
  const Op op_;
  const double flops_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace tug

#endif  // TUG_MODEL_OP_PROFILE_H_
