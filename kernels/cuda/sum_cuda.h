// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_SUM_CUDA_H_
#define TUG_KERNELS_CUDA_SUM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// The operations of kernels/sum.h that workers apply to gradients on the GPU; servers alone copy
// and sum messages. All pointers are to device memory. No alignment is needed; fastest with
// pointers aligned to 16 bytes. They return once the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h) and of ScratchBuffer (kernels/cuda/device/device.h).
//
// `all_finite` is one word, which the caller initializes to a value other than 0. It becomes 0 if
// an element is not finite and otherwise stays unchanged, so one word serves any number of calls
// and is read once.

// acc += src, with the CPU's bits; checks whether every element of src is finite.
//   src, acc [n], not overlapping
absl::Status AddAndCheck(const float* src, float* acc, int64_t n, uint32_t* all_finite,
                         const Stream& stream);

// Checks whether every element is finite.
//   x [n]
absl::Status AllFinite(const float* x, int64_t n, uint32_t* all_finite, const Stream& stream);

// *sum = the sum of x[i]^2 in FP64, by the tree of kernels/sum.h over chunks of kSumChunk elements;
// its statement about ranges holds here, too. The order within a chunk differs from the CPU's, and
// so do the bits.
//   x [n]; sum: one number
absl::Status SumOfSquares(const float* x, int64_t n, double* sum, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_SUM_CUDA_H_
