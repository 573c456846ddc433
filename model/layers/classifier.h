// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_CLASSIFIER_H_
#define TUG_MODEL_LAYERS_CLASSIFIER_H_

#include <cstdint>
#include <optional>

#include "kernels/cross_entropy.h"
#include "model/layers/activations.h"
#include "model/layers/block.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"

namespace tug {

// logits = x W + b for the first token's x (PRE: ln_f(x)), and the losses of the samples' classes.
template <typename T>
class Classifier : public Head<T> {
 public:
  // `activations` must outlive this.
  Classifier(const BlockSpec& spec, const ModelShape& shape, const kernels::Objective& objective,
             const Activations<T>& activations);

  void Forward(const Pass<T>& pass) override;
  void Backward(const Pass<T>& pass) override;
  void Logits(const Pass<T>& pass, int64_t sample, std::span<float> logits) override;

 private:
  using Head<T>::arrays_;

  void ComputeLogits(const Pass<T>& pass);

  const ModelShape shape_;
  const kernels::Objective objective_;
  const StackActivations<T>& stack_;
  T* const branch_;
  Linear<T> linear_;
  std::optional<Norm<T>> norm_;  // PRE
};

extern template class Classifier<float>;
extern template class Classifier<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_CLASSIFIER_H_
