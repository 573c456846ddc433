#ifndef TUG_KERNELS_SUM_CUDA_H_
#define TUG_KERNELS_SUM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// Of kernels/sum.h what a worker does with gradients on the GPU; copies and sums of messages are
// the servers' alone. All pointers are to device memory; no alignment is needed, but at boundaries
// of 16 bytes they are faster. They return when the work is queued. Errors: those of Launch
// (kernels/cuda_language.h) and of ScratchBuffer (kernels/device.h).
//
// `all_finite` is one word, not 0 beforehand: it becomes 0 where an element is not finite and stays
// as it is where all are. So one word serves any number of calls, and is read once.

// acc += src, with the CPU's bits; looks whether every element of src is finite.
//   src, acc [n], not overlapping
absl::Status AddAndCheck(const float* src, float* acc, int64_t n, uint32_t* all_finite,
                         const Stream& stream);

// Looks whether every element is finite.
//   x [n]
absl::Status AllFinite(const float* x, int64_t n, uint32_t* all_finite, const Stream& stream);

// *sum = the sum of x[i]^2 in FP64, by the tree of kernels/sum.h over chunks of kSumChunk elements:
// what it says of ranges holds here too. Within a chunk the order is another, so the bits are not
// the CPU's.
//   x [n]; sum: one number
absl::Status SumOfSquares(const float* x, int64_t n, double* sum, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_SUM_CUDA_H_
