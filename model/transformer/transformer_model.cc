// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/transformer_model.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/cross_entropy.h"
#include "model/layers/classifier.h"
#include "model/layers/dropout_sites.h"
#include "model/layers/layer_block.h"
#include "model/layout.h"

namespace tug {

template <typename T>
absl::StatusOr<std::unique_ptr<Model>> TransformerModel<T>::Create(
    const ModelOptions& options, std::unique_ptr<Backend<T>> backend) {
  ActivationOptions activations = ActivationOptionsOf(options);
  activations.logits_stride = backend->LogitsStride(HeadColumns(activations.shape));
  activations.logits_gradient_bytes = backend->LogitsGradientBytes();
  absl::StatusOr<std::shared_ptr<std::byte>> memory =
      backend->Allocate(Activations<T>::SizeBytes(activations), "activations");
  if (absl::IsResourceExhausted(memory.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(memory.status().message(),
                     ": lower train.micro_batch, or set train.recompute to keep less (tug plan "
                     "shows how much)"));
  }
  RETURN_IF_ERROR(memory.status());
  return absl::WrapUnique(
      new TransformerModel(options, activations, std::move(backend), *std::move(memory)));
}

template <typename T>
TransformerModel<T>::TransformerModel(const ModelOptions& options,
                                      const ActivationOptions& activations,
                                      std::unique_ptr<Backend<T>> backend,
                                      std::shared_ptr<std::byte> memory)
    : shape_(ModelShapeOf(options.config, options.symbols, options.classes)),
      dropout_(static_cast<float>(options.config.dropout())),
      max_samples_(options.max_micro_batch),
      inference_(options.inference),
      table_(ModelLayout(options.config, options.symbols, options.classes)),
      backend_(std::move(backend)),
      activations_(activations, std::move(memory)),
      pass_{.backend = *backend_, .profile = options.profile} {
  AddStack(/*decoder_stack=*/false);
  if (shape_.has_decoder_stack()) AddStack(/*decoder_stack=*/true);
  AddHead({.label_smoothing = static_cast<float>(options.train.label_smoothing()),
           .z_loss = static_cast<float>(options.train.z_loss())});
  TUG_CHECK_EQ(num_blocks(), static_cast<int>(blocks_.size()));
}

template <typename T>
void TransformerModel<T>::AddStack(bool decoder_stack) {
  const uint32_t site = EmbeddingSite(decoder_stack, shape_.layers);
  const bool tied = shape_.tied_head && static_cast<int>(blocks_.size()) == TiedBlockOf(shape_);
  std::unique_ptr<EmbeddingBlock<T>> embedding;
  if (decoder_stack) {
    embedding = std::make_unique<DecoderEmbeddingBlock<T>>(NextSpec(), shape_, site, activations_);
  } else {
    embedding = std::make_unique<EmbeddingBlock<T>>(NextSpec(), "", shape_, tied, site,
                                                    activations_.stacks.front());
  }
  if (tied) tied_ = embedding.get();
  blocks_.push_back(std::move(embedding));

  LayerBlock<T>* below = nullptr;
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    auto block = std::make_unique<LayerBlock<T>>(NextSpec(), shape_, decoder_stack, layer,
                                                 activations_, below);
    below = block.get();
    blocks_.push_back(std::move(block));
  }
}

template <typename T>
void TransformerModel<T>::AddHead(const kernels::Objective& objective) {
  std::unique_ptr<Head<T>> head;
  if (shape_.family == ModelConfig::ENCODER) {
    head = std::make_unique<Classifier<T>>(NextSpec(), shape_, objective, activations_);
  } else {
    auto lm_head = std::make_unique<LmHead<T>>(NextSpec(), shape_, objective, activations_);
    lm_head_ = lm_head.get();
    head = std::move(lm_head);
  }
  head_ = head.get();
  blocks_.push_back(std::move(head));
}

template <typename T>
std::optional<int> TransformerModel<T>::tied_block() const {
  if (tied_ == nullptr) return std::nullopt;
  return TiedBlockOf(shape_);
}

template <typename T>
void TransformerModel<T>::BindWeights(int block, WeightsView weights) {
  blocks_[static_cast<size_t>(block)]->parameters().BindWeights(weights);
  if (tied_block() == block) lm_head_->BindTied(tied_->wte().rows);
}

template <typename T>
void TransformerModel<T>::ReleaseWeights(int block) {
  blocks_[static_cast<size_t>(block)]->parameters().ReleaseWeights();
  if (tied_block() == block) lm_head_->ReleaseTied();
}

template <typename T>
uint64_t TransformerModel<T>::weight_copy_bytes() const {
  uint64_t bytes = tied_ != nullptr ? lm_head_->TiedCopyBytes() : 0;
  for (const auto& block : blocks_) bytes += block->parameters().CopyBytes();
  return bytes;
}

template <typename T>
void TransformerModel<T>::BindGradient(int block, std::span<float> gradient) {
  blocks_[static_cast<size_t>(block)]->parameters().BindGradient(gradient);
  if (tied_block() == block) lm_head_->BindTiedGradient(tied_->wte().gradient);
}

template <typename T>
void TransformerModel<T>::CheckSymbols(std::span<const int32_t> tokens) const {
  TUG_CHECK_EQ(tokens.size(), static_cast<size_t>(pass_.rows()));
  for (const int32_t token : tokens) {
    TUG_CHECK(token >= 0 && token < shape_.symbols) << "token " << token;
  }
}

template <typename T>
void TransformerModel<T>::Begin(const MicroBatch& batch, int64_t seq) {
  TUG_CHECK_GE(batch.samples, 1);
  TUG_CHECK_LE(batch.samples, max_samples_);
  TUG_CHECK(!batch.training || !inference_) << "a model for inference cannot be trained";
  pass_.batch = batch;
  pass_.inputs = backend_->LoadInputs(batch);
  pass_.targets = 0;
  pass_.samples = batch.samples;
  pass_.seq = seq;
  pass_.p = batch.training ? dropout_ : 0.0f;
  CheckSymbols(batch.tokens);
  next_forward_ = 0;
  next_backward_ = -1;
}

template <typename T>
void TransformerModel<T>::BeginWholeSamples(const MicroBatch& batch) {
  Begin(batch, shape_.context);
  if (shape_.has_decoder_stack()) CheckSymbols(batch.decoder_tokens);
  if (!batch.lengths.empty()) {
    TUG_CHECK_EQ(batch.lengths.size(), static_cast<size_t>(batch.samples));
  }
  for (const int32_t length : batch.lengths) {
    TUG_CHECK(length >= 1 && length <= shape_.context) << "length " << length;
  }
}

template <typename T>
void TransformerModel<T>::Start(const MicroBatch& batch) {
  BeginWholeSamples(batch);
  const bool classifies = shape_.family == ModelConfig::ENCODER;
  TUG_CHECK_EQ(batch.targets.size(),
               static_cast<size_t>(classifies ? pass_.samples : pass_.rows()));
  const int64_t end = classifies ? shape_.classes : shape_.symbols;
  const int32_t least = classifies ? 0 : kernels::kNoTarget;
  for (const int32_t target : batch.targets) {
    TUG_CHECK(target >= least && target < end) << "target " << target;
    if (target != kernels::kNoTarget) ++pass_.targets;
  }
}

// A profile measures operations one by one, so they are not batched.
template <typename T>
void TransformerModel<T>::Run(absl::FunctionRef<void()> pass) {
  if (pass_.profile != nullptr) {
    pass();
  } else {
    backend_->Together(pass);
  }
}

template <typename T>
void TransformerModel<T>::Forward(int block) {
  TUG_CHECK_EQ(block, next_forward_) << "blocks run forward in order";
  ++next_forward_;
  Run([&] { blocks_[static_cast<size_t>(block)]->Forward(pass_); });
  if (block == last() && pass_.batch.training) next_backward_ = block;
}

template <typename T>
void TransformerModel<T>::Backward(int block) {
  TUG_CHECK_EQ(block, next_backward_) << "blocks run backward in order, after a training pass";
  --next_backward_;
  Run([&] { blocks_[static_cast<size_t>(block)]->Backward(pass_); });
}

template <typename T>
LossSums TransformerModel<T>::losses() const {
  TUG_CHECK_EQ(next_forward_, last() + 1) << "the forward pass is not complete";
  TUG_CHECK(!pass_.batch.training || next_backward_ < last())
      << "losses of a training pass are known after Backward of the last block";
  return head_->losses(pass_);
}

template <typename T>
void TransformerModel<T>::Logits(std::span<const int32_t> tokens, std::span<float> logits) {
  TUG_CHECK(shape_.family == ModelConfig::DECODER);
  TUG_CHECK(!tokens.empty() && tokens.size() <= static_cast<size_t>(shape_.context));
  TUG_CHECK_EQ(logits.size(), static_cast<size_t>(shape_.symbols));
  MicroBatch batch;
  batch.samples = 1;
  batch.tokens = tokens;
  Begin(batch, static_cast<int64_t>(tokens.size()));
  for (int block = 0; block < last(); ++block) Forward(block);
  head_->Logits(pass_, pass_.rows() - 1, logits);
}

template <typename T>
void TransformerModel<T>::Logits(const MicroBatch& batch, int position, std::span<float> logits) {
  const bool classifies = shape_.family == ModelConfig::ENCODER;
  TUG_CHECK(classifies || shape_.family == ModelConfig::ENCODER_DECODER);
  TUG_CHECK(position >= 0 && position < (classifies ? 1 : shape_.context));
  TUG_CHECK_EQ(logits.size(), static_cast<size_t>(classifies ? shape_.classes : shape_.symbols));
  TUG_CHECK(batch.samples == 1 && !batch.training);
  BeginWholeSamples(batch);
  for (int block = 0; block < last(); ++block) Forward(block);
  head_->Logits(pass_, position, logits);
}

template class TransformerModel<float>;
template class TransformerModel<kernels::Bf16>;

}  // namespace tug
