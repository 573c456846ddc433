// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_QUEUED_MODEL_H_
#define TUG_WORKER_QUEUED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "model/model.h"

namespace tug {

// For tests: wraps a model, with the same bits, and uses all the freedom of Model::queues. It reads
// weights, computes and writes gradients only when waited for, and no further than necessary; until
// then a bound gradient is all NaNs. Code that frees memory or reads too early gets other bits.
class QueuedModel : public Model {
 public:
  // REQUIRES: `model` outlives this.
  explicit QueuedModel(Model& model) : model_(model), blocks_(static_cast<size_t>(num_blocks())) {
    for (int b = 0; b < num_blocks(); ++b) {
      Block& block = blocks_[static_cast<size_t>(b)];
      for (const TensorSpec& tensor : blocks().blocks(b).tensors()) {
        uint64_t elements = 1;
        for (const uint64_t size : tensor.shape()) elements *= size;
        block.elements += elements;
      }
      block.gradient.resize(block.elements);
      model_.BindGradient(b, block.gradient);
    }
  }

  const BlockTable& blocks() const override { return model_.blocks(); }
  std::optional<int> tied_block() const override { return model_.tied_block(); }

  void BindWeights(int block, WeightsView weights) override {
    Queue([this, block, weights] {
      Block& to = blocks_[static_cast<size_t>(block)];
      to.fp32.assign(weights.fp32.begin(), weights.fp32.end());
      to.bf16.assign(weights.bf16.begin(), weights.bf16.end());
      model_.BindWeights(block, {.fp32 = to.fp32, .bf16 = to.bf16});
    });
  }
  void ReleaseWeights(int) override { Drain(); }
  uint64_t weight_copy_bytes() const override { return 0; }
  void BindGradient(int block, std::span<float> gradient) override {
    TUG_CHECK_EQ(gradient.size(), blocks_[static_cast<size_t>(block)].elements);
    blocks_[static_cast<size_t>(block)].bound = gradient;
  }

  void Start(const MicroBatch& batch) override {
    partial_ = batch.partial;
    auto inputs = std::make_shared<Inputs>(batch);
    Queue([this, inputs] { model_.Start((started_ = inputs)->batch); });
  }
  void Forward(int block) override {
    Queue([this, block] { model_.Forward(block); });
    if (block + 1 == num_blocks()) losses_at_ = queued_;
  }
  void Backward(int block) override {
    Block& of = blocks_[static_cast<size_t>(block)];
    const std::span<float> to = of.bound;
    if (!partial_) {
      for (float& element : to) element = std::numeric_limits<float>::quiet_NaN();
    }
    Queue([this, block, to, partial = partial_] {
      model_.Backward(block);
      const std::vector<float>& gradient = blocks_[static_cast<size_t>(block)].gradient;
      if (!partial) std::memcpy(to.data(), gradient.data(), to.size_bytes());
    });
    of.backward_at = queued_;
    if (block + 1 == num_blocks()) losses_at_ = queued_;
  }
  LossSums losses() const override {
    Drain(losses_at_);
    return model_.losses();
  }

  bool queues() const override { return true; }
  absl::Status AwaitGradient(int block) override {
    const uint64_t at = blocks_[static_cast<size_t>(block)].backward_at;
    behind_an_awaited_gradient_ += queued_ - at;
    Drain(at);
    return status_;
  }
  absl::Status status() const override { return status_; }
  absl::Status Synchronize() override {
    Drain();
    return status_;
  }
  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override {
    Drain();
    model_.Logits(tokens, logits);
  }
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override {
    Drain();
    model_.Logits(batch, position, logits);
  }

  // First error of the device, reported from now on.
  void Fail(absl::Status status) { status_ = std::move(status); }
  // Work that was queued behind each gradient when it was awaited, summed: what the device had to
  // do while the host processed the gradient.
  uint64_t behind_an_awaited_gradient() const { return behind_an_awaited_gradient_; }

 private:
  // Own copy of a batch: the caller's may change once Start returns.
  struct Inputs {
    explicit Inputs(const MicroBatch& from)
        : batch(from),
          tokens(from.tokens.begin(), from.tokens.end()),
          lengths(from.lengths.begin(), from.lengths.end()),
          decoder_tokens(from.decoder_tokens.begin(), from.decoder_tokens.end()),
          targets(from.targets.begin(), from.targets.end()) {
      batch.tokens = tokens;
      batch.lengths = lengths;
      batch.decoder_tokens = decoder_tokens;
      batch.targets = targets;
    }
    MicroBatch batch;
    std::vector<int32_t> tokens, lengths, decoder_tokens, targets;
  };
  struct Block {
    uint64_t elements = 0;
    std::vector<float> fp32;  // weights, as the device has them
    std::vector<kernels::Bf16> bf16;
    std::vector<float> gradient;
    std::span<float> bound;    // gradient
    uint64_t backward_at = 0;  // value of done_ when the last pass is done
  };

  void Queue(std::function<void()> what) {
    queue_.push_back(std::move(what));
    ++queued_;
  }
  void Drain(uint64_t until) const {
    for (; done_ < until; ++done_) {
      queue_.front()();
      queue_.pop_front();
    }
  }
  void Drain() const { Drain(queued_); }

  Model& model_;
  std::vector<Block> blocks_;
  // Mutable: `losses` waits too.
  mutable std::deque<std::function<void()>> queue_;
  uint64_t queued_ = 0;
  mutable uint64_t done_ = 0;
  uint64_t losses_at_ = 0;
  uint64_t behind_an_awaited_gradient_ = 0;
  bool partial_ = false;
  std::shared_ptr<Inputs> started_;  // of the pass that the device computes
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_WORKER_QUEUED_MODEL_H_
