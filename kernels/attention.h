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

template <typename T>
struct AttentionForwardArgs {
  AttentionShape shape;
  AttentionOperands<const T> in;
  float p;  // dropout
  DropoutKey key;
  T* out;              // [batch][queries][width]
  float* log_sum_exp;  // [batch][heads][queries], written: log(sum_k exp(score)), for the backward
                       // pass
};

// Multi-head attention, per sample and head:
//   out = dropout(softmax(Q K^T / sqrt(head_dim))) V,  over the keys that the query reaches.
// Papers: Vaswani et al. 2017, eq. 1; that no matrix of queries x keys is stored, Dao et al. 2022.
// A task holds the probabilities of a block of 64 queries at a time; the backward pass computes
// them again from log_sum_exp, bit for bit.
// T is float or Bf16; scores, softmax and all sums are FP32, results are rounded once. With Bf16,
// on a machine that multiplies it, what is multiplied is bf16: dropout(probabilities) and, in the
// backward pass, the gradients of the scores are rounded too.
// Dropout: element (head * queries + query) * round_up(keys, 64) + key of the sample, as in
// kernels/dropout.h. REQUIRES: 0 <= p < 1, and where p > 0 that heads * queries * round_up(keys,
// 64) <= 2^34. The bits of a sample depend on that sample alone. Thread-safe for calls with
// different pools.
template <typename T>
void AttentionForward(ThreadPool& pool, const AttentionForwardArgs<T>& args);

template <typename T>
struct AttentionBackwardArgs {
  AttentionShape shape;
  AttentionOperands<const T> in;  // as in the forward pass
  float p;                        // likewise
  DropoutKey key;                 // likewise
  const T* out;                   // the forward pass's; not read on the CPU
  const float* log_sum_exp;       // the forward pass's
  const T* dout;                  // [batch][queries][width]
  AttentionOperands<T> gradient;  // must not overlap the others
};

// The gradients with respect to queries, keys and values (written, not added; those of keys and
// values that are padding are 0). Thread-safe for calls with different pools.
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

// One query of one sample in FP32, for generation token by token: no dropout. Thread-safe for calls
// with different pools.
void AttentionOfOneQuery(ThreadPool& pool, const OneQueryArgs& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_H_
