// SPDX-License-Identifier: Apache-2.0
#include "model/layers/layer_block.h"

#include <utility>

#include "model/layers/attention_branch.h"
#include "model/layers/dropout_sites.h"
#include "model/layers/mlp_branch.h"

namespace tug {

template <typename T>
LayerBlock<T>::LayerBlock(const BlockSpec& spec, const ModelShape& shape, bool decoder_stack,
                          int64_t layer, Activations<T>& activations, LayerBlock<T>* below)
    : Block<T>(spec, spec.name() + "."),
      pre_norm_(shape.pre_norm()),
      width_(shape.width),
      activations_(activations),
      arrays_(activations.stacks[decoder_stack ? 1 : 0].layers[static_cast<size_t>(layer)]),
      memory_(*arrays_.memory),
      gradient_(activations.stacks[decoder_stack ? 1 : 0].gradient),
      below_(below) {
  AddParts(shape, decoder_stack, layer);
  Connect();
}

template <typename T>
template <typename B>
void LayerBlock<T>::AddPart(std::unique_ptr<B> branch, const std::string& name,
                            const std::string& norm, uint32_t output_site) {
  branch->AddTo(this->parameters_, name);
  parts_.push_back({.branch = std::move(branch),
                    .norm = Norm<T>(width_),
                    .output_site = output_site,
                    .stream = nullptr,
                    .input = nullptr,
                    .sum = nullptr,
                    .norm_output = nullptr,
                    .statistics = memory_.statistics[parts_.size()]});
  parts_.back().norm.AddTo(this->parameters_, norm);
}

template <typename T>
void LayerBlock<T>::AddParts(const ModelShape& shape, bool decoder_stack, int64_t layer) {
  parts_.reserve(kMaxBranches);  // parameters keep pointers into it
  const LayerSites sites = SitesOfLayer(decoder_stack, shape.layers, layer);
  const BranchScratch<T> scratch{activations_.branch, activations_.wide};
  const bool causal = decoder_stack || shape.family == ModelConfig::DECODER;
  AddPart(
      std::make_unique<SelfAttention<T>>(shape, causal, sites.attention, *memory_.self, scratch),
      "attn", "ln_1", sites.attention_output);
  if (decoder_stack) {
    const typename CrossAttention<T>::Source source{
        .values = activations_.memory,
        .gradient = activations_.stacks.front().gradient,
        .first_gradient = layer + 1 == shape.layers};
    AddPart(
        std::make_unique<CrossAttention<T>>(shape, sites.cross, *memory_.cross, source, scratch),
        "cross", "ln_cross", sites.cross_output);
  }
  AddPart(std::make_unique<Mlp<T>>(shape, memory_, scratch), "mlp", "ln_2", sites.mlp_output);
}

template <typename T>
void LayerBlock<T>::Connect() {
  const T* stream = arrays_.in;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    const bool last = i + 1 == parts_.size();
    part.stream = stream;
    part.sum = last && pre_norm_ ? arrays_.out : memory_.sums[i];
    part.norm_output = last && !pre_norm_ ? arrays_.out : memory_.norms[i];
    part.input = pre_norm_ ? part.norm_output : part.stream;
    stream = pre_norm_ ? part.sum : part.norm_output;
  }
}

template <typename T>
void LayerBlock<T>::AddResidual(const Pass<T>& pass, const Part& part) {
  const OpTimer timer(pass.profile, Op::kResidual, MovedWork<T>(3 * pass.rows() * width_));
  pass.backend.DropoutAdd(
      pass.Dropout(width_, part.output_site, activations_.branch, part.stream, part.sum));
}

// A residual sum and the LayerNorm that reads it are one kernel; with PRE that is the next branch's
// norm.
template <typename T>
void LayerBlock<T>::Run(const Pass<T>& pass, bool whole) {
  T* const y = activations_.branch;
  if (pre_norm_) {
    const Part& first = parts_.front();
    first.norm.Forward(pass, pass.rows(), first.stream, first.norm_output, first.statistics);
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const bool last = i + 1 == parts_.size();
    part.branch->Inner(pass, part.input);
    if (last && pre_norm_ && !whole) break;
    part.branch->Project(pass, y);
    if (last && pre_norm_) {
      AddResidual(pass, part);
    } else {
      const Part& normed = pre_norm_ ? parts_[i + 1] : part;
      normed.norm.ForwardSum(pass, y, part.stream, part.output_site, part.sum, normed.norm_output,
                             normed.statistics);
    }
  }
  memory_.holder = this;
}

template <typename T>
void LayerBlock<T>::Forward(const Pass<T>& pass) {
  this->parameters_.Prepare(pass);
  Run(pass, /*whole=*/true);
}

template <typename T>
void LayerBlock<T>::Restore(const Pass<T>& pass, bool whole) {
  if (memory_.holder == this) return;
  if (!arrays_.keeps_input) below_->Restore(pass, /*whole=*/true);
  Run(pass, whole);
}

template <typename T>
const T* LayerBlock<T>::BranchGradient(const Pass<T>& pass, const Part& part) {
  if (pass.p == 0) return gradient_;
  const OpTimer timer(pass.profile, Op::kResidual, MovedWork<T>(2 * pass.rows() * width_));
  T* const dy = activations_.branch_gradient;
  pass.backend.DropoutAdd(
      pass.Dropout(width_, part.output_site, gradient_, /*residual=*/nullptr, dy));
  return dy;
}

template <typename T>
void LayerBlock<T>::BackwardPre(const Pass<T>& pass, const Part& part) {
  T* const dnorm = activations_.branch;
  part.branch->Backward(pass, part.input, BranchGradient(pass, part), /*add=*/false, dnorm);
  part.norm.Backward(pass, pass.rows(), dnorm, norm_input(part), part.statistics, /*add=*/true,
                     gradient_);
}

template <typename T>
void LayerBlock<T>::BackwardPost(const Pass<T>& pass, const Part& part) {
  part.norm.Backward(pass, pass.rows(), gradient_, norm_input(part), part.statistics,
                     /*add=*/false, gradient_);
  part.branch->Backward(pass, part.input, BranchGradient(pass, part), /*add=*/true, gradient_);
}

template <typename T>
void LayerBlock<T>::Backward(const Pass<T>& pass) {
  this->parameters_.PrepareBackward(pass);
  Restore(pass, /*whole=*/false);
  for (size_t i = parts_.size(); i-- > 0;) {
    if (pre_norm_) {
      BackwardPre(pass, parts_[i]);
    } else {
      BackwardPost(pass, parts_[i]);
    }
  }
}

template class LayerBlock<float>;
template class LayerBlock<kernels::Bf16>;

}  // namespace tug
