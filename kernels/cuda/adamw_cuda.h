// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ADAMW_CUDA_H_
#define TUG_KERNELS_CUDA_ADAMW_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/adamw.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// AdamWStep of kernels/adamw.h on the GPU, with the CPU's bits. All pointers are to device memory.
// Returns once the kernel is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h).
absl::Status AdamWStep(const AdamWParams& params, const AdamWArgs& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ADAMW_CUDA_H_
