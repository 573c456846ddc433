// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_TRANSFORMER_MODEL_H_
#define TUG_MODEL_TRANSFORMER_TRANSFORMER_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/backend.h"
#include "model/layers/activations.h"
#include "model/layers/block.h"
#include "model/layers/embedding_block.h"
#include "model/layers/lm_head.h"
#include "model/model.h"

namespace tug {

// A Model with activations and gradients of type T. Owns the blocks and the memory they share, and
// checks the order of calls in a pass.
template <typename T>
class TransformerModel final : public Model {
 public:
  // RESOURCE_EXHAUSTED: no memory for activations. REQUIRES: `options` were checked by CreateModel.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelOptions& options,
                                                       std::unique_ptr<Backend<T>> backend);

  const BlockTable& blocks() const override { return table_; }
  std::optional<int> tied_block() const override;
  void BindWeights(int block, WeightsView weights) override;
  void ReleaseWeights(int block) override;
  uint64_t weight_copy_bytes() const override;
  void BindGradient(int block, std::span<float> gradient) override;
  void Start(const MicroBatch& batch) override;
  void Forward(int block) override;
  void Backward(int block) override;
  LossSums losses() const override;
  absl::Status status() const override { return backend_->status(); }
  absl::Status Synchronize() override { return backend_->Synchronize(); }
  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override;
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override;

 private:
  TransformerModel(const ModelOptions& options, const ActivationOptions& activations,
                   std::unique_ptr<Backend<T>> backend, std::shared_ptr<std::byte> memory);
  int last() const { return static_cast<int>(blocks_.size()) - 1; }
  void AddStack(bool decoder_stack);
  void AddHead(const kernels::Objective& objective);
  const BlockSpec& NextSpec() const { return table_.blocks(static_cast<int>(blocks_.size())); }
  void CheckSymbols(std::span<const int32_t> tokens) const;
  void Begin(const MicroBatch& batch, int64_t seq);
  void BeginWholeSamples(const MicroBatch& batch);
  // Runs a block's part of the current pass.
  void Run(absl::FunctionRef<void()> pass);

  const ModelShape shape_;
  const float dropout_;
  const int max_samples_;
  const bool inference_;
  const BlockTable table_;
  const std::unique_ptr<Backend<T>> backend_;  // outlives the objects it made, below
  Activations<T> activations_;
  std::vector<std::unique_ptr<Block<T>>> blocks_;
  // The three below are owned by blocks_.
  Head<T>* head_ = nullptr;
  LmHead<T>* lm_head_ = nullptr;       // null for ENCODER
  EmbeddingBlock<T>* tied_ = nullptr;  // null without a tied head

  // State of the current pass.
  Pass<T> pass_;
  int next_forward_ = 0;  // next block; last() + 1: all done
  int next_backward_ = -1;
};

extern template class TransformerModel<float>;
extern template class TransformerModel<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_TRANSFORMER_MODEL_H_
