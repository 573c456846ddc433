// SPDX-License-Identifier: Apache-2.0
#include "model/layers/attention_branch.h"

namespace tug {
namespace {

// Work of `products` products of queries and keys; padding counts.
OpWork AttentionWork(const kernels::AttentionShape& shape, int products) {
  const auto queries = static_cast<double>(shape.queries);
  const double pairs =
      shape.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(shape.keys);
  return {.flops = 2 * products * static_cast<double>(shape.batch * shape.width()) * pairs};
}

template <typename T>
void AttentionForward(const Pass<T>& pass, const kernels::AttentionShape& shape,
                      const kernels::AttentionOperands<const T>& operands, uint32_t site,
                      AttentionMemory<T>& memory) {
  const OpTimer timer(pass.profile, Op::kAttentionForward, AttentionWork(shape, 2));
  pass.backend.AttentionForward(
      {shape, operands, pass.p, pass.Key(site), memory.mixed, memory.log_sum_exp});
}

template <typename T>
void AttentionBackward(const Pass<T>& pass, const kernels::AttentionShape& shape, const T* dmixed,
                       const kernels::AttentionOperands<const T>& operands, uint32_t site,
                       const AttentionMemory<T>& memory,
                       const kernels::AttentionOperands<T>& gradient) {
  const OpTimer timer(pass.profile, Op::kAttentionBackward, AttentionWork(shape, 5));
  pass.backend.AttentionBackward({.shape = shape,
                                  .in = operands,
                                  .p = pass.p,
                                  .key = pass.Key(site),
                                  .out = memory.mixed,
                                  .log_sum_exp = memory.log_sum_exp,
                                  .dout = dmixed,
                                  .gradient = gradient});
}

template <typename T>
kernels::AttentionShape ShapeOf(const ModelShape& shape, const Pass<T>& pass) {
  return {.batch = pass.samples,
          .queries = pass.seq,
          .keys = pass.seq,
          .heads = shape.heads,
          .head_dim = shape.width / shape.heads};
}

}  // namespace

template <typename T>
SelfAttention<T>::SelfAttention(const ModelShape& shape, bool causal, uint32_t site,
                                AttentionMemory<T>& memory, BranchScratch<T> scratch)
    : shape_(shape),
      causal_(causal),
      site_(site),
      memory_(memory),
      scratch_(scratch),
      qkv_(shape.width, 3 * shape.width),
      projection_(shape.width, shape.width) {}

template <typename T>
void SelfAttention<T>::AddTo(BlockParameters<T>& parameters, const std::string& name) {
  qkv_.AddTo(parameters, name + ".c_attn");
  projection_.AddTo(parameters, name + ".c_proj");
}

template <typename T>
kernels::AttentionShape SelfAttention<T>::Shape(const Pass<T>& pass) const {
  kernels::AttentionShape shape = ShapeOf(shape_, pass);
  shape.causal = causal_;
  if (!causal_) shape.key_counts = pass.inputs.lengths;
  return shape;
}

template <typename T>
template <typename U>
kernels::AttentionOperands<U> SelfAttention<T>::Operands(U* qkv) const {
  const int64_t c = shape_.width;
  return {qkv, qkv + c, qkv + 2 * c, 3 * c, 3 * c};
}

template <typename T>
void SelfAttention<T>::Inner(const Pass<T>& pass, const T* x) {
  qkv_.Forward(pass, pass.rows(), x, memory_.q);
  AttentionForward<T>(pass, Shape(pass), Operands<const T>(memory_.q), site_, memory_);
  memory_.holder = this;
}

template <typename T>
void SelfAttention<T>::Project(const Pass<T>& pass, T* y) {
  projection_.Forward(pass, pass.rows(), memory_.mixed, y);
}

template <typename T>
void SelfAttention<T>::Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) {
  if (memory_.holder != this) Inner(pass, x);
  T* const dmixed = scratch_.branch;
  projection_.Backward(pass, pass.rows(), memory_.mixed, dy, /*add=*/false, dmixed);
  T* const dqkv = scratch_.wide;
  AttentionBackward<T>(pass, Shape(pass), dmixed, Operands<const T>(memory_.q), site_, memory_,
                       Operands(dqkv));
  qkv_.Backward(pass, pass.rows(), x, dqkv, add, dx);
}

template <typename T>
CrossAttention<T>::CrossAttention(const ModelShape& shape, uint32_t site,
                                  AttentionMemory<T>& memory, Source source,
                                  BranchScratch<T> scratch)
    : shape_(shape),
      site_(site),
      memory_(memory),
      source_(source),
      scratch_(scratch),
      q_(shape.width, shape.width),
      kv_(shape.width, 2 * shape.width),
      projection_(shape.width, shape.width) {}

template <typename T>
void CrossAttention<T>::AddTo(BlockParameters<T>& parameters, const std::string& name) {
  q_.AddTo(parameters, name + ".c_q");
  kv_.AddTo(parameters, name + ".c_kv");
  projection_.AddTo(parameters, name + ".c_proj");
}

template <typename T>
kernels::AttentionShape CrossAttention<T>::Shape(const Pass<T>& pass) const {
  kernels::AttentionShape shape = ShapeOf(shape_, pass);
  shape.key_counts = pass.inputs.lengths;
  return shape;
}

template <typename T>
template <typename U>
kernels::AttentionOperands<U> CrossAttention<T>::Operands(U* q, U* kv) const {
  const int64_t c = shape_.width;
  return {q, kv, kv + c, c, 2 * c};
}

template <typename T>
void CrossAttention<T>::Inner(const Pass<T>& pass, const T* x) {
  q_.Forward(pass, pass.rows(), x, memory_.q);
  kv_.Forward(pass, pass.rows(), source_.values, memory_.kv);
  AttentionForward<T>(pass, Shape(pass), Operands<const T>(memory_.q, memory_.kv), site_, memory_);
  memory_.holder = this;
}

template <typename T>
void CrossAttention<T>::Project(const Pass<T>& pass, T* y) {
  projection_.Forward(pass, pass.rows(), memory_.mixed, y);
}

template <typename T>
void CrossAttention<T>::Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) {
  if (memory_.holder != this) Inner(pass, x);
  T* const dmixed = scratch_.branch;
  projection_.Backward(pass, pass.rows(), memory_.mixed, dy, /*add=*/false, dmixed);
  T* const dq = scratch_.wide;
  T* const dkv = dq + pass.rows() * shape_.width;
  AttentionBackward<T>(pass, Shape(pass), dmixed, Operands<const T>(memory_.q, memory_.kv), site_,
                       memory_, Operands(dq, dkv));
  kv_.Backward(pass, pass.rows(), source_.values, dkv, !source_.first_gradient, source_.gradient);
  q_.Backward(pass, pass.rows(), x, dq, add, dx);
}

template class SelfAttention<float>;
template class SelfAttention<kernels::Bf16>;
template class CrossAttention<float>;
template class CrossAttention<kernels::Bf16>;

}  // namespace tug
