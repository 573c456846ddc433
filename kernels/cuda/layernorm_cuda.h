// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_LAYERNORM_CUDA_H_
#define TUG_KERNELS_CUDA_LAYERNORM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/layernorm.h"

namespace tug::kernels::cuda {

// The operations of kernels/layernorm.h on the GPU. T is float or Bf16; statistics and arithmetic
// are FP32. Sums are in a fixed order that differs from the CPU's: the bits of a row's results
// depend on that row alone, those of dgamma and dbeta on the rows and their count. All pointers are
// to device memory. They return once the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h) and of ScratchBuffer (kernels/cuda/device/device.h);
// INVALID_ARGUMENT (a width above kMaxLayerNormWidth).
inline constexpr int64_t kMaxLayerNormWidth = 8192;

template <typename T>
absl::Status LayerNormForward(const LayerNormForwardArgs<T>& args, const Stream& stream);
// One pass if 64 divides the width and all pointers are aligned to 16 bytes, else two.
template <typename T>
absl::Status ResidualLayerNormForward(const ResidualLayerNormForwardArgs<T>& args,
                                      const Stream& stream);
template <typename T>
absl::Status LayerNormBackward(const LayerNormBackwardArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_LAYERNORM_CUDA_H_
