#ifndef TUG_KERNELS_ADAMW_CUDA_H_
#define TUG_KERNELS_ADAMW_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/adamw.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// AdamWStep of kernels/adamw.h on the GPU, with its bits.
//   g, w_in, w_out, m, v   [n] in device memory; w_out is w_in itself or does not overlap it
//   w_out_bf16             [n] in device memory, or null
// Returns when the kernel is queued. Errors: those of Launch (kernels/cuda_language.h).
absl::Status AdamWStep(int64_t n, const AdamWParams& params, const float* g, const float* w_in,
                       float* w_out, float* m, float* v, Bf16* w_out_bf16, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_ADAMW_CUDA_H_
