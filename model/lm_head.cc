#include "model/lm_head.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

template <typename T>
LmHead<T>::LmHead(const BlockSpec& spec, const ModelShape& shape,
                  const kernels::Objective& objective, const Activations<T>& activations)
    : Head<T>(spec, ""),
      shape_(shape),
      objective_(objective),
      stack_(activations.stacks.back()),
      arrays_(activations.head),
      branch_(activations.branch),
      matrix_(shape.width, shape.symbols, kernels::WeightOrder::kOutIn),
      norm_(shape.width) {
  if (!shape.tied_head) this->parameters_.Add("lm_head.weight", matrix_);
  norm_.AddTo(this->parameters_, "ln_f");
}

template <typename T>
void LmHead<T>::ComputeLogits(const Pass& pass, int64_t first, int64_t count) {
  norm_.Forward(pass, count, stack_.out + first * shape_.width, arrays_.input, arrays_.statistics);
  const OpTimer timer(pass.profile, Op::kHeadProducts, Flops(count));
  kernels::LinearForward<T, float>(pass.pool, matrix_.weights, count, arrays_.input, nullptr,
                                   arrays_.logits);
}

template <typename T>
void LmHead<T>::Forward(const Pass& pass) {
  this->parameters_.Prepare(pass);
  matrix_.Prepare(pass);
  this->losses_ = {};
  if (pass.batch.training) return;
  for (int64_t first = 0; first < pass.rows(); first += arrays_.chunk_rows) {
    const int64_t count = std::min(arrays_.chunk_rows, pass.rows() - first);
    const int32_t* const targets = &pass.batch.targets[static_cast<size_t>(first)];
    ComputeLogits(pass, first, count);
    const OpTimer timer(pass.profile, Op::kLoss);
    kernels::CrossEntropyLoss(pass.pool, count, shape_.symbols, arrays_.logits, targets,
                              arrays_.losses, arrays_.correct);
    this->AddLosses(targets, arrays_.losses, arrays_.correct, count);
  }
}

template <typename T>
void LmHead<T>::Backward(const Pass& pass) {
  TUG_CHECK(matrix_.gradient != nullptr) << "no gradient bound to the matrix of the head";
  this->parameters_.PrepareBackward(pass);
  matrix_.Prepare(pass);
  for (int64_t first = 0; first < pass.rows(); first += arrays_.chunk_rows) {
    BackwardChunk(pass, first, std::min(arrays_.chunk_rows, pass.rows() - first));
  }
}

// 1. logits;  2. losses and dlogits;  3. dhead (+)= dlogits^T ln_f;  4. dln_f = dlogits head;
// 5. through LayerNorm into the gradient of the stream.
template <typename T>
void LmHead<T>::BackwardChunk(const Pass& pass, int64_t first, int64_t count) {
  ComputeLogits(pass, first, count);
  const int32_t* const targets = &pass.batch.targets[static_cast<size_t>(first)];
  {
    const OpTimer timer(pass.profile, Op::kLoss);
    kernels::CrossEntropy<T>(pass.pool, count, shape_.symbols, arrays_.logits, targets, objective_,
                             arrays_.logits_gradient, arrays_.losses, arrays_.correct);
  }
  this->AddLosses(targets, arrays_.losses, arrays_.correct, count);
  {
    const OpTimer timer(pass.profile, Op::kHeadProducts, 2 * Flops(count));
    kernels::LinearWeightGradient<T>(pass.pool, matrix_.weights.order(), shape_.width,
                                     shape_.symbols, count, arrays_.input, arrays_.logits_gradient,
                                     pass.batch.accumulate || first > 0, matrix_.gradient);
    kernels::LinearInputGradient<T>(pass.pool, matrix_.weights, count, arrays_.logits_gradient,
                                    /*accumulate=*/false, branch_);
  }
  norm_.Backward(pass, count, branch_, stack_.out + first * shape_.width, arrays_.statistics,
                 /*add=*/false, stack_.gradient + first * shape_.width);
}

template <typename T>
void LmHead<T>::Logits(const Pass& pass, int64_t row, std::span<float> logits) {
  this->parameters_.Prepare(pass);
  matrix_.Prepare(pass);
  ComputeLogits(pass, row, 1);
  std::copy_n(arrays_.logits, logits.size(), logits.begin());
}

template class LmHead<float>;
template class LmHead<kernels::Bf16>;

}  // namespace tug
