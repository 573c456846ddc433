// SPDX-License-Identifier: Apache-2.0
#include "model/layers/classifier.h"

namespace tug {

template <typename T>
Classifier<T>::Classifier(const BlockSpec& spec, const ModelShape& shape,
                          const kernels::Objective& objective, const Activations<T>& activations)
    : Head<T>(spec, activations.head),
      shape_(shape),
      objective_(objective),
      stack_(activations.stacks.back()),
      branch_(activations.branch),
      linear_(shape.width, shape.classes) {
  linear_.AddTo(this->parameters_, "classifier");
  if (!shape.pre_norm()) return;
  norm_.emplace(shape.width);
  norm_->AddTo(this->parameters_, "ln_f");
}

template <typename T>
void Classifier<T>::ComputeLogits(const Pass<T>& pass) {
  const int64_t c = shape_.width;
  T* const gathered = norm_.has_value() ? arrays_.first_tokens : arrays_.input;
  pass.backend.CopyRows(pass.samples, c, stack_.out, pass.seq * c, gathered, c);
  if (norm_.has_value()) {
    norm_->Forward(pass, pass.samples, gathered, arrays_.input, arrays_.statistics);
  }
  linear_.ForwardLogits(pass, pass.samples, arrays_.input, arrays_.logits);
}

template <typename T>
void Classifier<T>::Forward(const Pass<T>& pass) {
  this->parameters_.Prepare(pass);
  if (pass.batch.training) return;
  ComputeLogits(pass);
  const OpTimer timer(pass.profile, Op::kLoss);
  pass.backend.CrossEntropy(this->LossOf(pass, shape_.classes, 0, pass.samples));
}

template <typename T>
void Classifier<T>::Backward(const Pass<T>& pass) {
  this->parameters_.PrepareBackward(pass);
  ComputeLogits(pass);
  {
    const OpTimer timer(pass.profile, Op::kLoss);
    kernels::CrossEntropyArgs<T> args = this->LossOf(pass, shape_.classes, 0, pass.samples);
    args.objective = objective_;
    args.gradient = arrays_.logits_gradient;
    pass.backend.CrossEntropy(args);
  }
  linear_.BackwardLogits(pass, pass.samples, arrays_.input, arrays_.logits_gradient, branch_);
  if (norm_.has_value()) {
    norm_->Backward(pass, pass.samples, branch_, arrays_.first_tokens, arrays_.statistics,
                    /*add=*/false, branch_);
  }
  const int64_t c = shape_.width;
  pass.backend.FillZero(stack_.gradient, static_cast<size_t>(pass.rows() * c) * sizeof(T));
  pass.backend.CopyRows(pass.samples, c, branch_, c, stack_.gradient, pass.seq * c);
}

template <typename T>
void Classifier<T>::Logits(const Pass<T>& pass, int64_t sample, std::span<float> logits) {
  this->parameters_.Prepare(pass);
  ComputeLogits(pass);
  const int64_t stride = pass.backend.LogitsStride(shape_.classes);
  pass.backend.Fetch(logits.data(), arrays_.logits + sample * stride, logits.size_bytes());
}

template class Classifier<float>;
template class Classifier<kernels::Bf16>;

}  // namespace tug
