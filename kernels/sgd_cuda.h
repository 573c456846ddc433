#ifndef TUG_KERNELS_SGD_CUDA_H_
#define TUG_KERNELS_SGD_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/sgd.h"

namespace tug::kernels::cuda {

// SgdStep of kernels/sgd.h on the GPU, with its bits; delay compensation is the servers' alone.
//   g, w_in, w_out, u   [n] in device memory; w_out is w_in itself or does not overlap it; u may be
//                       null without momentum
//   w_out_bf16          [n] in device memory, or null
// Returns when the kernel is queued. Errors: those of Launch (kernels/cuda_language.h).
absl::Status SgdStep(int64_t n, const SgdParams& params, const float* g, const float* w_in,
                     float* w_out, float* u, Bf16* w_out_bf16, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_SGD_CUDA_H_
