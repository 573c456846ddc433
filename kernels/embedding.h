#ifndef TUG_KERNELS_EMBEDDING_H_
#define TUG_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// out[s][t] = wte[tokens[s][t]] + wpe[t], W (of the weights) and T float or Bf16, added in FP32.
//   tokens   [samples][seq], each in [0, V): the caller has checked them
//   wte      [V][width], token embeddings
//   wpe      [at least seq][width], position embeddings
//   out      [samples][seq][width]
// Thread-safe for calls with different pools.
template <typename W, typename T>
void EmbeddingForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                      const int32_t* tokens, const W* wte, const W* wpe, T* out);

// dwte[tokens[s][t]] += dout[s][t];  dwpe[t] += dout[s][t], each summed in FP32 in the order of
// (s, t).
//   dout   [samples][seq][width];  dwte [V][width];  dwpe [at least seq][width]
// Thread-safe for calls with different pools.
template <typename T>
void EmbeddingBackward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                       const int32_t* tokens, const T* dout, float* dwte, float* dwpe);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_EMBEDDING_H_
