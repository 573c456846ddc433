// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_TEST_KERNELS_H_
#define TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_TEST_KERNELS_H_

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// c = a b by one warp, through shared memory and the fragments of
// kernels/cuda/device/tensor_core.h.
//   a [16][16]; b [16][8]; b_transposed [8][16] = b^T; c [2][16][8]: from b and from b_transposed
absl::Status MultiplyByFragments(const Bf16* a, const Bf16* b, const Bf16* b_transposed, float* c,
                                 const Stream& stream);

// squared = a a. The second operand is loaded as four transposed matrices at once, which are two
// adjacent fragments.   a, squared [16][16]
absl::Status SquareByFragments(const Bf16* a, float* squared, const Stream& stream);

// out = in with zeros from n on, by copies of 16 bytes in two groups; the last group is waited for
// only at the end.   in [n], out [512]; n < 512
absl::Status CopyThroughShared(int n, const float* in, float* out, const Stream& stream);

// out[i] = both halves of PackBf16(x[2i], x[2i + 1]).   x, out [64]
absl::Status PackPairs(const float* x, Bf16* out, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DEVICE_TENSOR_CORE_TEST_KERNELS_H_
