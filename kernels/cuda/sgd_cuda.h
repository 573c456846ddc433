// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_SGD_CUDA_H_
#define TUG_KERNELS_CUDA_SGD_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/sgd.h"

namespace tug::kernels::cuda {

// SgdStep of kernels/sgd.h on the GPU, with the CPU's bits. Delay compensation runs on servers
// only. All pointers are to device memory. Returns once the kernel is queued. Errors: those of
// Launch (kernels/cuda/device/cuda_language.h).
absl::Status SgdStep(const SgdParams& params, const SgdArgs& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_SGD_CUDA_H_
