// SPDX-License-Identifier: Apache-2.0
#include "model/layers/embedding_block.h"

#include <span>

namespace tug {
namespace {

// `table_bytes`: per element of a token's row and of a position's row.
template <typename T>
OpWork EmbeddingWork(const Pass<T>& pass, int64_t width, size_t table_bytes) {
  const auto elements = static_cast<double>(pass.rows() * width);
  const auto positions = static_cast<double>(pass.seq * width);
  return {.bytes =
              elements * sizeof(T) + (elements + positions) * static_cast<double>(table_bytes)};
}

}  // namespace

template <typename T>
EmbeddingBlock<T>::EmbeddingBlock(const BlockSpec& spec, const std::string& prefix,
                                  const ModelShape& shape, bool wte_is_head, uint32_t site,
                                  const StackActivations<T>& stack)
    : Block<T>(spec, prefix),
      shape_(shape),
      wte_is_head_(wte_is_head),
      site_(site),
      out_(stack.embedding),
      gradient_(stack.gradient) {
  this->parameters_.Add("wte.weight", wte_);
  this->parameters_.Add("wpe.weight", wpe_);
}

template <typename T>
void EmbeddingBlock<T>::Forward(const Pass<T>& pass) {
  this->parameters_.Prepare(pass);
  {
    const auto forward = [&]<typename W>(std::span<const W> wte, std::span<const W> wpe) {
      const OpTimer timer(pass.profile, Op::kEmbedding,
                          EmbeddingWork(pass, shape_.width, sizeof(W)));
      pass.backend.EmbeddingForward(kernels::EmbeddingForwardArgs<W, T>{
          pass.samples, pass.seq, shape_.width, Tokens(pass), wte.data(), wpe.data(), out_});
    };
    if (!wte_.rows.fp32.empty()) {
      forward(wte_.rows.fp32, wpe_.rows.fp32);
    } else {
      forward(wte_.rows.bf16, wpe_.rows.bf16);
    }
  }
  if (pass.p == 0) return;
  const OpTimer timer(pass.profile, Op::kResidual, MovedWork<T>(2 * pass.rows() * shape_.width));
  pass.backend.DropoutAdd(pass.Dropout(shape_.width, site_, out_, /*residual=*/nullptr, out_));
}

template <typename T>
void EmbeddingBlock<T>::Backward(const Pass<T>& pass) {
  this->parameters_.PrepareBackward(pass);
  if (pass.p > 0) {
    const OpTimer timer(pass.profile, Op::kResidual, MovedWork<T>(2 * pass.rows() * shape_.width));
    pass.backend.DropoutAdd(
        pass.Dropout(shape_.width, site_, gradient_, /*residual=*/nullptr, gradient_));
  }
  // Gradients are both read and written.
  const OpTimer timer(pass.profile, Op::kEmbedding,
                      EmbeddingWork(pass, shape_.width, 2 * sizeof(float)));
  if (!pass.batch.accumulate) {
    if (!wte_is_head_) {
      pass.backend.FillZero(wte_.gradient, wte_.rows.size() * sizeof(float));
    }
    pass.backend.FillZero(wpe_.gradient, wpe_.rows.size() * sizeof(float));
  }
  pass.backend.EmbeddingBackward({pass.samples, pass.seq, shape_.width, Tokens(pass), gradient_,
                                  wte_.gradient, wpe_.gradient});
}

template <typename T>
DecoderEmbeddingBlock<T>::DecoderEmbeddingBlock(const BlockSpec& spec, const ModelShape& shape,
                                                uint32_t site, const Activations<T>& activations)
    : EmbeddingBlock<T>(spec, "decoder.", shape, shape.tied_head, site, activations.stacks.back()),
      activations_(activations) {
  if (!shape.pre_norm()) return;
  memory_norm_.emplace(shape.width);
  memory_norm_->AddTo(this->parameters_, "ln_memory");
}

template <typename T>
void DecoderEmbeddingBlock<T>::Forward(const Pass<T>& pass) {
  EmbeddingBlock<T>::Forward(pass);
  if (!memory_norm_.has_value()) return;
  memory_norm_->Forward(pass, pass.rows(), activations_.stacks.front().out,
                        activations_.memory_norm, activations_.memory_statistics);
}

// The decoder's layers have left the gradient of the memory in the encoder's gradient stream.
template <typename T>
void DecoderEmbeddingBlock<T>::Backward(const Pass<T>& pass) {
  EmbeddingBlock<T>::Backward(pass);
  if (!memory_norm_.has_value()) return;
  const StackActivations<T>& encoder = activations_.stacks.front();
  memory_norm_->Backward(pass, pass.rows(), encoder.gradient, encoder.out,
                         activations_.memory_statistics, /*add=*/false, encoder.gradient);
}

template class EmbeddingBlock<float>;
template class EmbeddingBlock<kernels::Bf16>;
template class DecoderEmbeddingBlock<float>;
template class DecoderEmbeddingBlock<kernels::Bf16>;

}  // namespace tug
