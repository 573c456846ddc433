// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_LM_HEAD_H_
#define TUG_MODEL_LAYERS_LM_HEAD_H_

#include <cstdint>
#include <span>

#include "kernels/cross_entropy.h"
#include "model/layers/activations.h"
#include "model/layers/block.h"
#include "model/layers/norm.h"

namespace tug {

// logits = ln_f(x) head^T, and the losses of the next tokens. Logits exist for one chunk of rows at
// a time (HeadChunkRows). In training everything happens in Backward, because the gradient of the
// logits is read twice and then discarded: chunk by chunk, or, if the backend has memory for the
// gradients of several chunks (Backend::LogitsGradientBytes), with one product for all of them.
template <typename T>
class LmHead : public Head<T> {
 public:
  // `activations` must outlive this.
  LmHead(const BlockSpec& spec, const ModelShape& shape, const kernels::Objective& objective,
         const Activations<T>& activations);

  // With a tied head: the rows of the token embedding and their gradient.
  void BindTied(WeightsView wte) { matrix_.SetSource(wte); }
  void ReleaseTied() { matrix_.Release(); }
  uint64_t TiedCopyBytes() const { return matrix_.CopyBytes(); }
  void BindTiedGradient(float* gradient) { matrix_.gradient = gradient; }

  void Forward(const Pass<T>& pass) override;
  void Backward(const Pass<T>& pass) override;

  void Logits(const Pass<T>& pass, int64_t row, std::span<float> logits) override;

 private:
  using Head<T>::arrays_;

  // Computes the logits of rows [first, first + count), at most one chunk. ln_f and its statistics
  // go to rows of the head's arrays from `at` on.
  void ComputeLogits(const Pass<T>& pass, int64_t first, int64_t count, int64_t at = 0);
  // Computes the losses of a chunk and the logits' gradient, the latter from row `at` on.
  void ComputeGradient(const Pass<T>& pass, int64_t first, int64_t count, int64_t at);
  // `count`: at most gradient_rows.
  void BackwardRows(const Pass<T>& pass, int64_t first, int64_t count);

  const ModelShape shape_;
  const kernels::Objective objective_;
  const StackActivations<T>& stack_;
  T* const branch_;
  Matrix<T> matrix_;
  Norm<T> norm_;
};

extern template class LmHead<float>;
extern template class LmHead<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_LM_HEAD_H_
