// SPDX-License-Identifier: Apache-2.0
#include "model/layers/lm_head.h"

#include <algorithm>

#include "base/check.h"

namespace tug {
namespace {

// Work of reading logits and writing their gradients.
template <typename T>
OpWork LossWork(int64_t logits) {
  return {.bytes = static_cast<double>(logits) * (sizeof(float) + sizeof(T))};
}

}  // namespace

template <typename T>
LmHead<T>::LmHead(const BlockSpec& spec, const ModelShape& shape,
                  const kernels::Objective& objective, const Activations<T>& activations)
    : Head<T>(spec, activations.head),
      shape_(shape),
      objective_(objective),
      stack_(activations.stacks.back()),
      branch_(activations.branch),
      matrix_(shape.width, shape.symbols, kernels::WeightOrder::kOutIn),
      norm_(shape.width) {
  if (!shape.tied_head) this->parameters_.Add("lm_head.weight", matrix_);
  norm_.AddTo(this->parameters_, "ln_f");
}

template <typename T>
void LmHead<T>::ComputeLogits(const Pass<T>& pass, int64_t first, int64_t count, int64_t at) {
  T* const input = arrays_.input + at * shape_.width;
  norm_.Forward(pass, count, stack_.out + first * shape_.width, input,
                {arrays_.statistics.mean + at, arrays_.statistics.rstd + at});
  const OpTimer timer(pass.profile, Op::kHeadProducts, {.flops = matrix_.Flops(count)});
  const int64_t stride = pass.backend.LogitsStride(shape_.symbols);
  pass.backend.LogitsForward(*matrix_.weights,
                             {count, input, /*bias=*/nullptr, arrays_.logits, stride});
}

template <typename T>
void LmHead<T>::Forward(const Pass<T>& pass) {
  this->parameters_.Prepare(pass);
  matrix_.Prepare(pass);
  if (pass.batch.training) return;
  for (int64_t first = 0; first < pass.rows(); first += arrays_.chunk_rows) {
    const int64_t count = std::min(arrays_.chunk_rows, pass.rows() - first);
    ComputeLogits(pass, first, count);
    const OpTimer timer(pass.profile, Op::kLoss, MovedWork<float>(count * shape_.symbols));
    pass.backend.CrossEntropy(this->LossOf(pass, shape_.symbols, first, count));
  }
}

template <typename T>
void LmHead<T>::Backward(const Pass<T>& pass) {
  TUG_CHECK(matrix_.gradient != nullptr) << "no gradient bound to the matrix of the head";
  this->parameters_.PrepareBackward(pass);
  matrix_.Prepare(pass);
  for (int64_t first = 0; first < pass.rows(); first += arrays_.gradient_rows) {
    BackwardRows(pass, first, std::min(arrays_.gradient_rows, pass.rows() - first));
  }
}

template <typename T>
void LmHead<T>::ComputeGradient(const Pass<T>& pass, int64_t first, int64_t count, int64_t at) {
  ComputeLogits(pass, first, count, at);
  const OpTimer timer(pass.profile, Op::kLoss, LossWork<T>(count * shape_.symbols));
  kernels::CrossEntropyArgs<T> args = this->LossOf(pass, shape_.symbols, first, count);
  args.objective = objective_;
  args.gradient = arrays_.logits_gradient + at * args.stride;
  pass.backend.CrossEntropy(args);
}

// For each chunk: 1. logits; 2. losses and dlogits. Then 3. dhead (+)= dlogits^T ln_f;
// 4. dln_f = dlogits head; 5. through LayerNorm into the gradient of the stream.
template <typename T>
void LmHead<T>::BackwardRows(const Pass<T>& pass, int64_t first, int64_t count) {
  for (int64_t at = 0; at < count; at += arrays_.chunk_rows) {
    ComputeGradient(pass, first + at, std::min(arrays_.chunk_rows, count - at), at);
  }
  {
    const OpTimer timer(pass.profile, Op::kHeadProducts, {.flops = 2 * matrix_.Flops(count)});
    const int64_t stride = pass.backend.LogitsStride(shape_.symbols);
    pass.backend.LinearWeightGradient(matrix_.WeightGradient(
        count, arrays_.input, arrays_.logits_gradient, stride, pass.batch.accumulate || first > 0));
    pass.backend.LinearInputGradient(
        *matrix_.weights, {count, arrays_.logits_gradient, stride, /*accumulate=*/false, branch_});
  }
  norm_.Backward(pass, count, branch_, stack_.out + first * shape_.width, arrays_.statistics,
                 /*add=*/false, stack_.gradient + first * shape_.width);
}

template <typename T>
void LmHead<T>::Logits(const Pass<T>& pass, int64_t row, std::span<float> logits) {
  this->parameters_.Prepare(pass);
  matrix_.Prepare(pass);
  ComputeLogits(pass, row, 1);
  pass.backend.Fetch(logits.data(), arrays_.logits, logits.size_bytes());
}

template class LmHead<float>;
template class LmHead<kernels::Bf16>;

}  // namespace tug
