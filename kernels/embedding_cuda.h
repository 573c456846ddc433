#ifndef TUG_KERNELS_EMBEDDING_CUDA_H_
#define TUG_KERNELS_EMBEDDING_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/embedding.h"

namespace tug::kernels::cuda {

// Those of kernels/embedding.h on the GPU. All pointers are to device memory. They return when the
// work is queued. Errors: those of Launch (kernels/cuda_language.h) and of ScratchBuffer
// (kernels/device.h).

// With the CPU's bits.
template <typename W, typename T>
absl::Status EmbeddingForward(const EmbeddingForwardArgs<W, T>& args, const Stream& stream);

// dwpe is summed in the order of s: the CPU's bits. dwte in a fixed order, which is the CPU's
// except for the tokens that are seen so often that their sum is shared out; so it takes the same
// time whichever tokens there are. REQUIRES: samples * seq < 2^31.
template <typename T>
absl::Status EmbeddingBackward(const EmbeddingBackwardArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_EMBEDDING_CUDA_H_
