// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_DROPOUT_CUDA_H_
#define TUG_KERNELS_CUDA_DROPOUT_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/dropout.h"

namespace tug::kernels::cuda {

// DropoutAdd of kernels/dropout.h on the GPU: the same masks, and the CPU's bits. All pointers are
// to device memory. Returns once the kernel is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h).
template <typename T>
absl::Status DropoutAdd(const DropoutAddArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_DROPOUT_CUDA_H_
