// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_EMBEDDING_CUDA_H_
#define TUG_KERNELS_CUDA_EMBEDDING_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/embedding.h"

namespace tug::kernels::cuda {

// The operations of kernels/embedding.h on the GPU. All pointers are to device memory. They return
// once the work is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h) and of
// ScratchBuffer (kernels/cuda/device/device.h).

// Has the CPU's bits.
template <typename W, typename T>
absl::Status EmbeddingForward(const EmbeddingForwardArgs<W, T>& args, const Stream& stream);

// dwpe is summed in the order of s, which gives the CPU's bits. dwte is summed in a fixed order,
// which is the CPU's except for tokens so frequent that their sum is split; so the time does not
// depend on the tokens. REQUIRES: samples * seq < 2^31.
template <typename T>
absl::Status EmbeddingBackward(const EmbeddingBackwardArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_EMBEDDING_CUDA_H_
