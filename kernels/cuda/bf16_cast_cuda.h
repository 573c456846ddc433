// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_BF16_CAST_CUDA_H_
#define TUG_KERNELS_CUDA_BF16_CAST_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// The casts of kernels/bf16.h on the GPU, with the CPU's bits, NaNs included. All pointers are to
// device memory. No alignment is needed; fastest with pointers aligned to 16 bytes. They return
// once the kernel is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h).

// dst = src rounded to nearest, ties to even.   src, dst [n], not overlapping
absl::Status Bf16FromFloat(const float* src, Bf16* dst, int64_t n, const Stream& stream);

// dst = src, exactly.   src, dst [n], not overlapping
absl::Status FloatFromBf16(const Bf16* src, float* dst, int64_t n, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_BF16_CAST_CUDA_H_
