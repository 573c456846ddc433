#ifndef TUG_KERNELS_LAYERNORM_CUDA_H_
#define TUG_KERNELS_LAYERNORM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/layernorm.h"

namespace tug::kernels::cuda {

// Those of kernels/layernorm.h on the GPU. T is float or Bf16; statistics and arithmetic are FP32.
// Sums are in a fixed order, which is not the CPU's: the bits of a row's results depend on that row
// alone, those of dgamma and dbeta on the rows and their count. All pointers are to device memory.
// They return when the work is queued. Errors: those of Launch (kernels/cuda_language.h) and of
// ScratchBuffer (kernels/device.h); INVALID_ARGUMENT (a width above kMaxLayerNormWidth).
inline constexpr int64_t kMaxLayerNormWidth = 8192;

template <typename T>
absl::Status LayerNormForward(const LayerNormForwardArgs<T>& args, const Stream& stream);
// In one pass where 64 divides the width.
template <typename T>
absl::Status ResidualLayerNormForward(const ResidualLayerNormForwardArgs<T>& args,
                                      const Stream& stream);
template <typename T>
absl::Status LayerNormBackward(const LayerNormBackwardArgs<T>& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_LAYERNORM_CUDA_H_
