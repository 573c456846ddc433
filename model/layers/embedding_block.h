// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_EMBEDDING_BLOCK_H_
#define TUG_MODEL_LAYERS_EMBEDDING_BLOCK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/layers/activations.h"
#include "model/layers/block.h"
#include "model/layers/norm.h"

namespace tug {

// out = dropout(wte[token] + wpe[position]). With `wte_is_head`, the head's backward pass has
// already written its part of wte's gradient.
template <typename T>
class EmbeddingBlock : public Block<T> {
 public:
  EmbeddingBlock(const BlockSpec& spec, const std::string& prefix, const ModelShape& shape,
                 bool wte_is_head, uint32_t site, const StackActivations<T>& stack);

  void Forward(const Pass<T>& pass) override;
  void Backward(const Pass<T>& pass) override;

  const Table& wte() const { return wte_; }

 protected:
  // [rows]; overridden for the decoder of an encoder-decoder.
  virtual const int32_t* Tokens(const Pass<T>& pass) const { return pass.inputs.tokens; }

 private:
  const ModelShape shape_;
  const bool wte_is_head_;
  const uint32_t site_;
  T* const out_;
  T* const gradient_;
  Table wte_, wpe_;
};

// First block of the decoder in an encoder-decoder, and the first to read the encoder's output:
// with PRE it computes memory = ln_memory(output of the encoder), and its backward pass computes
// the gradient of that output.
template <typename T>
class DecoderEmbeddingBlock : public EmbeddingBlock<T> {
 public:
  // `activations` must outlive this.
  DecoderEmbeddingBlock(const BlockSpec& spec, const ModelShape& shape, uint32_t site,
                        const Activations<T>& activations);

  void Forward(const Pass<T>& pass) override;
  void Backward(const Pass<T>& pass) override;

 protected:
  const int32_t* Tokens(const Pass<T>& pass) const override { return pass.inputs.decoder_tokens; }

 private:
  const Activations<T>& activations_;
  std::optional<Norm<T>> memory_norm_;  // PRE
};

extern template class EmbeddingBlock<float>;
extern template class EmbeddingBlock<kernels::Bf16>;
extern template class DecoderEmbeddingBlock<float>;
extern template class DecoderEmbeddingBlock<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_EMBEDDING_BLOCK_H_
