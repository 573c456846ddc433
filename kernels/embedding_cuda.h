#ifndef TUG_KERNELS_EMBEDDING_CUDA_H_
#define TUG_KERNELS_EMBEDDING_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// Those of kernels/embedding.h on the GPU. All pointers are to device memory. They return when the
// work is queued. Errors: those of Launch (kernels/cuda_language.h) and of ScratchBuffer
// (kernels/device.h).

// out[s][t] = wte[tokens[s][t]] + wpe[t], W (of the weights) and T float or Bf16, added in FP32:
// the CPU's bits.
//   tokens   [samples][seq], each in [0, V): the caller has checked them
//   wte      [V][width], token embeddings
//   wpe      [at least seq][width], position embeddings
//   out      [samples][seq][width]
template <typename W, typename T>
absl::Status EmbeddingForward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                              const W* wte, const W* wpe, T* out, const Stream& stream);

// dwte[tokens[s][t]] += dout[s][t];  dwpe[t] += dout[s][t], each summed in FP32. dwpe in the order
// of s: the CPU's bits. dwte in a fixed order, which is the CPU's but for the tokens that are seen
// so often that their sum is shared out; so it takes the same time whichever tokens there are.
//   dout   [samples][seq][width];  dwte [V][width];  dwpe [at least seq][width]
// REQUIRES: samples * seq < 2^31.
template <typename T>
absl::Status EmbeddingBackward(int64_t samples, int64_t seq, int64_t width, const int32_t* tokens,
                               const T* dout, float* dwte, float* dwpe, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_EMBEDDING_CUDA_H_
