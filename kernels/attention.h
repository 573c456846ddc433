// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_ATTENTION_H_
#define TUG_KERNELS_ATTENTION_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/dropout.h"

namespace tug::kernels {

struct AttentionShape {
  int64_t batch = 0;    // samples
  int64_t queries = 0;  // positions per sample
  int64_t keys = 0;     // positions per sample; self-attention: equal to queries
  int64_t heads = 0;
  int64_t head_dim = 0;  // width = heads * head_dim
  // true: keys after the query are masked; REQUIRES: queries == keys.
  bool causal = false;
  // [batch], each in [1, keys]: keys of the sample; the remaining ones are padding, which no query
  // reaches. nullptr: no padding.
  const int32_t* key_counts = nullptr;

  int64_t width() const { return heads * head_dim; }
  int64_t stats_size() const { return batch * heads * queries; }
};

// Matrices of queries, keys and values, or of their gradients. Row i of sample s starts at q + (s *
// queries + i) * q_stride, k or v + (s * keys + i) * kv_stride, and is [heads][head_dim]. A single
// matrix [batch][seq][3 width] of all three is {qkv, qkv + width, qkv + 2 width, 3 width, 3 width}.
template <typename T>
struct AttentionOperands {
  T* q;
  T* k;
  T* v;
  int64_t q_stride;
  int64_t kv_stride;
};

template <typename T>
struct AttentionForwardArgs {
  AttentionShape shape;
  AttentionOperands<const T> in;
  float p;  // dropout probability
  DropoutKey key;
  T* out;              // [batch][queries][width]
  float* log_sum_exp;  // [batch][heads][queries], written: log(sum_k exp(score)), which the
                       // backward pass reads
};

// Multi-head attention, per sample and head:
//   out = dropout(softmax(Q K^T / sqrt(head_dim))) V,  over the keys that the query reaches.
// Papers: Vaswani et al. 2017, eq. 1; Dao et al. 2022 for not storing the queries x keys matrix. A
// task holds the probabilities of one block of 64 queries; the backward pass recomputes them from
// log_sum_exp, bit for bit.
// T is float or Bf16. Scores, softmax and all sums are FP32; results are rounded once. With Bf16,
// on a machine with bf16 products, the factors of products are bf16: dropout(probabilities) and, in
// the backward pass, the gradients of the scores are rounded too.
// Dropout: the element number within the sample is (head * queries + query) * round_up(keys, 64) +
// key, see kernels/dropout.h.
// REQUIRES: 0 <= p < 1; with p > 0, heads * queries * round_up(keys, 64) <= 2^34.
// The bits of a sample depend on that sample alone. Thread-safe for calls with different pools.
template <typename T>
void AttentionForward(ThreadPool& pool, const AttentionForwardArgs<T>& args);

template <typename T>
struct AttentionBackwardArgs {
  AttentionShape shape;
  AttentionOperands<const T> in;  // as in the forward pass
  float p;                        // as in the forward pass
  DropoutKey key;                 // as in the forward pass
  const T* out;                   // output of the forward pass; not read on the CPU
  const float* log_sum_exp;       // output of the forward pass
  const T* dout;                  // [batch][queries][width]
  AttentionOperands<T> gradient;  // must not overlap the other operands
};

// Gradients of queries, keys and values, overwritten (not added to); those of padding keys and
// values are 0. Thread-safe for calls with different pools.
template <typename T>
void AttentionBackward(ThreadPool& pool, const AttentionBackwardArgs<T>& args);

struct OneQueryArgs {
  int64_t keys;  // at least 1
  int64_t heads;
  int64_t head_dim;
  const float* q;  // [heads][head_dim]
  const float* k;  // [keys][heads][head_dim]
  const float* v;  // [keys][heads][head_dim]
  float* out;      // [heads][head_dim]
};

// Attention of one query of one sample in FP32, without dropout, for token-by-token generation.
// Thread-safe for calls with different pools.
void AttentionOfOneQuery(ThreadPool& pool, const OneQueryArgs& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_H_
