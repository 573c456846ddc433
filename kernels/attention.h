#ifndef TUG_KERNELS_ATTENTION_H_
#define TUG_KERNELS_ATTENTION_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/dropout.h"

namespace tug::kernels {

struct AttentionShape {
  int64_t batch = 0;  // samples
  int64_t seq = 0;    // positions of a sample
  int64_t heads = 0;
  int64_t head_dim = 0;  // width = heads * head_dim

  int64_t width() const { return heads * head_dim; }
  // Elements of `qkv`, `probs`, and `out`.
  int64_t qkv_size() const { return batch * seq * 3 * width(); }
  int64_t probs_size() const { return batch * heads * seq * seq; }
  int64_t out_size() const { return batch * seq * width(); }
};

// Causal multi-head self-attention, per sample and head:
//   probs = softmax(Q K^T / sqrt(head_dim)) over keys at or before the query;  out = dropout(probs)
//   V.
// Paper: Vaswani et al. 2017, eq. 1.
//   qkv     [batch][seq][3 * width]: Q, K, V one after the other, each [heads][head_dim]
//   probs   [batch][heads][seq][seq], written: the softmax before dropout, for the backward pass.
//   Keys after the
//           query are either 0 or not written: never read them.
//   out     [batch][seq][width]: [heads][head_dim]
// Dropout: element (head * seq + query) * round_up(seq, 64) + key of the sample, as in
// kernels/dropout.h. REQUIRES: 0 <= p < 1; heads * seq * round_up(seq, 64) <= 2^34. The bits of a
// sample depend on that sample alone. Thread-safe for calls with different pools.
void CausalAttentionForward(ThreadPool& pool, const AttentionShape& shape, const float* qkv,
                            float p, const DropoutKey& key, float* probs, float* out);

// dqkv = the gradient with respect to qkv (written, not added).
//   dout        [batch][seq][width]
//   qkv, probs  as the forward pass had and left them
//   dqkv        [batch][seq][3 * width]; must not overlap the others
// p and key as in the forward pass. Thread-safe for calls with different pools.
void CausalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, const float* dout,
                             const float* qkv, const float* probs, float p, const DropoutKey& key,
                             float* dqkv);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_H_
