// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_ATTENTION_BRANCH_H_
#define TUG_MODEL_LAYERS_ATTENTION_BRANCH_H_

#include <cstdint>
#include <string>

#include "kernels/attention.h"
#include "model/layers/activations.h"
#include "model/layers/branch.h"
#include "model/layers/linear.h"

namespace tug {

// proj(attention(q, k, v = qkv(x))); causal in decoders, else over all tokens that are not padding.
template <typename T>
class SelfAttention : public Branch<T> {
 public:
  // `memory` must outlive this.
  SelfAttention(const ModelShape& shape, bool causal, uint32_t site, AttentionMemory<T>& memory,
                BranchScratch<T> scratch);
  // Adds the parameters under `name` ("attn").
  void AddTo(BlockParameters<T>& parameters, const std::string& name);

  void Inner(const Pass<T>& pass, const T* x) override;
  void Project(const Pass<T>& pass, T* y) override;
  void Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) override;

 private:
  kernels::AttentionShape Shape(const Pass<T>& pass) const;
  template <typename U>
  kernels::AttentionOperands<U> Operands(U* qkv) const;

  const ModelShape shape_;
  const bool causal_;
  const uint32_t site_;
  AttentionMemory<T>& memory_;
  const BranchScratch<T> scratch_;
  Linear<T> qkv_, projection_;
};

// proj(attention(q(x), k, v = kv(memory))), over the memory's tokens that are not padding. The
// backward pass also adds to the gradient of the memory.
template <typename T>
class CrossAttention : public Branch<T> {
 public:
  // Input from the encoder, and its gradient. `first_gradient`: this layer's backward pass is the
  // first, and overwrites the gradient.
  struct Source {
    const T* values = nullptr;  // [rows, C]
    T* gradient = nullptr;      // [rows, C]
    bool first_gradient = false;
  };

  // `memory` must outlive this.
  CrossAttention(const ModelShape& shape, uint32_t site, AttentionMemory<T>& memory, Source source,
                 BranchScratch<T> scratch);
  // Adds the parameters under `name` ("cross").
  void AddTo(BlockParameters<T>& parameters, const std::string& name);

  void Inner(const Pass<T>& pass, const T* x) override;
  void Project(const Pass<T>& pass, T* y) override;
  void Backward(const Pass<T>& pass, const T* x, const T* dy, bool add, T* dx) override;

 private:
  kernels::AttentionShape Shape(const Pass<T>& pass) const;
  template <typename U>
  kernels::AttentionOperands<U> Operands(U* q, U* kv) const;

  const ModelShape shape_;
  const uint32_t site_;
  AttentionMemory<T>& memory_;
  const Source source_;
  const BranchScratch<T> scratch_;
  Linear<T> q_, kv_, projection_;
};

extern template class SelfAttention<float>;
extern template class SelfAttention<kernels::Bf16>;
extern template class CrossAttention<float>;
extern template class CrossAttention<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_ATTENTION_BRANCH_H_
