#include "model/classifier.h"

#include <algorithm>

namespace tug {

template <typename T>
Classifier<T>::Classifier(const BlockSpec& spec, const ModelShape& shape,
                          const kernels::Objective& objective, const Activations<T>& activations)
    : Head<T>(spec, ""),
      shape_(shape),
      objective_(objective),
      stack_(activations.stacks.back()),
      arrays_(activations.head),
      branch_(activations.branch),
      linear_(shape.width, shape.classes) {
  linear_.AddTo(this->parameters_, "classifier");
  if (!shape.pre_norm()) return;
  norm_.emplace(shape.width);
  norm_->AddTo(this->parameters_, "ln_f");
}

template <typename T>
void Classifier<T>::ComputeLogits(const Pass& pass) {
  const int64_t c = shape_.width;
  T* const gathered = norm_.has_value() ? arrays_.first_tokens : arrays_.input;
  for (int64_t sample = 0; sample < pass.samples; ++sample) {
    std::copy_n(stack_.out + sample * pass.seq * c, c, gathered + sample * c);
  }
  if (norm_.has_value()) {
    norm_->Forward(pass, pass.samples, gathered, arrays_.input, arrays_.statistics);
  }
  linear_.Forward(pass, pass.samples, arrays_.input, arrays_.logits);
}

template <typename T>
void Classifier<T>::Forward(const Pass& pass) {
  this->parameters_.Prepare(pass);
  this->losses_ = {};
  if (pass.batch.training) return;
  ComputeLogits(pass);
  const OpTimer timer(pass.profile, Op::kLoss);
  kernels::CrossEntropyLoss(pass.pool, pass.samples, shape_.classes, arrays_.logits,
                            pass.batch.targets.data(), arrays_.losses, arrays_.correct);
  this->AddLosses(pass.batch.targets.data(), arrays_.losses, arrays_.correct, pass.samples);
}

template <typename T>
void Classifier<T>::Backward(const Pass& pass) {
  this->parameters_.PrepareBackward(pass);
  ComputeLogits(pass);
  {
    const OpTimer timer(pass.profile, Op::kLoss);
    kernels::CrossEntropy<T>(pass.pool, pass.samples, shape_.classes, arrays_.logits,
                             pass.batch.targets.data(), objective_, arrays_.logits_gradient,
                             arrays_.losses, arrays_.correct);
  }
  this->AddLosses(pass.batch.targets.data(), arrays_.losses, arrays_.correct, pass.samples);
  linear_.Backward(pass, pass.samples, arrays_.input, arrays_.logits_gradient, /*add=*/false,
                   branch_);
  if (norm_.has_value()) {
    norm_->Backward(pass, pass.samples, branch_, arrays_.first_tokens, arrays_.statistics,
                    /*add=*/false, branch_);
  }
  const int64_t c = shape_.width;
  std::fill_n(stack_.gradient, pass.rows() * c, T{});
  for (int64_t sample = 0; sample < pass.samples; ++sample) {
    std::copy_n(branch_ + sample * c, c, stack_.gradient + sample * pass.seq * c);
  }
}

template <typename T>
void Classifier<T>::Logits(const Pass& pass, int64_t sample, std::span<float> logits) {
  this->parameters_.Prepare(pass);
  ComputeLogits(pass);
  std::copy_n(arrays_.logits + sample * shape_.classes, logits.size(), logits.begin());
}

template class Classifier<float>;
template class Classifier<kernels::Bf16>;

}  // namespace tug
