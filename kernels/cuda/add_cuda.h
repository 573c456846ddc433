// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ADD_CUDA_H_
#define TUG_KERNELS_CUDA_ADD_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// Add of kernels/add.h on the GPU, with the CPU's bits.
//   a, b, sum [n] in device memory; sum may be a, else no overlap. No alignment is needed; fastest
//   with pointers aligned to 16 bytes.
// Returns once the kernel is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h).
absl::Status Add(const float* a, const float* b, float* sum, int64_t n, const Stream& stream);
absl::Status Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ADD_CUDA_H_
