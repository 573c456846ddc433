#ifndef TUG_KERNELS_EMBEDDING_H_
#define TUG_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "base/thread_pool.h"

namespace tug::kernels {

// out[s][t] = wte[tokens[s][t]] + wpe[t].
//   tokens   [samples][seq], each in [0, V): the caller has checked them
//   wte      [V][width], token embeddings
//   wpe      [at least seq][width], position embeddings
//   out      [samples][seq][width]
// Thread-safe for calls with different pools.
void EmbeddingForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                      const int32_t* tokens, const float* wte, const float* wpe, float* out);

// dwte[tokens[s][t]] += dout[s][t];  dwpe[t] += dout[s][t], each summed in the order of (s, t).
//   dout   [samples][seq][width];  dwte [V][width];  dwpe [at least seq][width]
// Thread-safe for calls with different pools.
void EmbeddingBackward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                       const int32_t* tokens, const float* dout, float* dwte, float* dwpe);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_EMBEDDING_H_
