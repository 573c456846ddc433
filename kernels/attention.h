#ifndef TUG_KERNELS_ATTENTION_H_
#define TUG_KERNELS_ATTENTION_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/bf16.h"
#include "kernels/dropout.h"

namespace tug::kernels {

struct AttentionShape {
  int64_t batch = 0;    // samples
  int64_t queries = 0;  // positions of a sample
  int64_t keys = 0;     // of a sample; self-attention: as many as queries
  int64_t heads = 0;
  int64_t head_dim = 0;  // width = heads * head_dim
  // A query reaches keys at or before it only. REQUIRES then: queries == keys.
  bool causal = false;
  // [batch]: a query reaches the first so many keys of its sample only, the others are padding;
  // each in [1, keys]. nullptr: all.
  const int32_t* key_counts = nullptr;

  int64_t width() const { return heads * head_dim; }
  int64_t stats_size() const { return batch * heads * queries; }
};

// Matrices of queries, keys, values, or of their gradients. Row i of sample s begins at
// q + (s * queries + i) * q_stride, k and v + (s * keys + i) * kv_stride, and is [heads][head_dim].
// So one matrix [batch][seq][3 width] of all three is {qkv, qkv + width, qkv + 2 width, 3 width, 3
// width}.
template <typename T>
struct AttentionOperands {
  T* q;
  T* k;
  T* v;
  int64_t q_stride;
  int64_t kv_stride;
};

// Multi-head attention, per sample and head:
//   out = dropout(softmax(Q K^T / sqrt(head_dim))) V,  over the keys that the query reaches.
// Papers: Vaswani et al. 2017, eq. 1; that no matrix of queries x keys is stored, Dao et al. 2022.
// A task holds the probabilities of a block of 64 queries at a time; the backward pass computes
// them again from log_sum_exp, bit for bit.
//   out           [batch][queries][width]
//   log_sum_exp   [batch][heads][queries], written, FP32: log(sum_k exp(score)), for the backward
//                 pass
// T is float or Bf16; scores, softmax and all sums are FP32, results are rounded once. With Bf16, on
// a machine that multiplies it, what is multiplied is bf16: dropout(probabilities) and, in the
// backward pass, the gradients of the scores are rounded too.
// Dropout: element (head * queries + query) * round_up(keys, 64) + key of the sample, as in
// kernels/dropout.h. REQUIRES: 0 <= p < 1, and where p > 0 that heads * queries * round_up(keys,
// 64) <= 2^34. The bits of a sample depend on that sample alone. Thread-safe for calls with
// different pools.
template <typename T>
void AttentionForward(ThreadPool& pool, const AttentionShape& shape,
                      const AttentionOperands<const T>& in, float p, const DropoutKey& key, T* out,
                      float* log_sum_exp);

// The gradients with respect to queries, keys and values (written, not added; those of keys and
// values that are padding are 0).
//   dout              [batch][queries][width]
//   in, log_sum_exp   as the forward pass had and left them; `out` is not needed
//   gradient          must not overlap the others
// p and key as in the forward pass. Thread-safe for calls with different pools.
template <typename T>
void AttentionBackward(ThreadPool& pool, const AttentionShape& shape, const T* dout,
                       const AttentionOperands<const T>& in, const float* log_sum_exp, float p,
                       const DropoutKey& key, const AttentionOperands<T>& gradient);

// One query of one sample against `keys` >= 1 keys in FP32, for generation token by token: no
// dropout. Thread-safe for calls with different pools.
//   q, out [heads][head_dim];  k, v [keys][heads][head_dim]
void AttentionOfOneQuery(ThreadPool& pool, int64_t keys, int64_t heads, int64_t head_dim,
                         const float* q, const float* k, const float* v, float* out);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_H_
