// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_CROSS_ENTROPY_CUDA_H_
#define TUG_KERNELS_CUDA_CROSS_ENTROPY_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// CrossEntropy of kernels/cross_entropy.h on the GPU: the same loss, objective and gradient, in
// FP32. Sums are in a fixed order that differs from the CPU's; the bits of a row depend on that row
// alone. All pointers are to device memory. Logits that fit into shared memory (58,048 per row on
// an H200) are read only once. Fastest with a stride that is a multiple of 4. Returns once the
// kernel is queued. Errors: those of Launch (kernels/cuda/device/cuda_language.h).
template <typename T>
absl::Status CrossEntropy(const CrossEntropyArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_CROSS_ENTROPY_CUDA_H_
