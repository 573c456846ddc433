// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMBEDDING_H_
#define TUG_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// W (weights) and T (activations) are float or Bf16.
template <typename W, typename T>
struct EmbeddingForwardArgs {
  int64_t samples;
  int64_t seq;
  int64_t width;
  const int32_t* tokens;  // [samples][seq], each in [0, V); the caller has checked them
  const W* wte;           // [V][width], token embeddings
  const W* wpe;           // [at least seq][width], position embeddings
  T* out;                 // [samples][seq][width]
};

// out[s][t] = wte[tokens[s][t]] + wpe[t], added in FP32.
// Thread-safe for calls with different pools.
template <typename W, typename T>
void EmbeddingForward(ThreadPool& pool, const EmbeddingForwardArgs<W, T>& args);

// G is the type of the weights' gradients.
template <typename T, typename G = float>
struct EmbeddingBackwardArgs {
  int64_t samples;
  int64_t seq;
  int64_t width;
  const int32_t* tokens;  // as in the forward pass
  const T* dout;          // [samples][seq][width]
  G* dwte;                // [V][width]
  G* dwpe;                // [at least seq][width]
};

// dwte[tokens[s][t]] += dout[s][t];  dwpe[t] += dout[s][t], summed in FP32 in the order of (s, t).
// Thread-safe for calls with different pools.
template <typename T>
void EmbeddingBackward(ThreadPool& pool, const EmbeddingBackwardArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_EMBEDDING_H_
