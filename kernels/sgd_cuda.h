#ifndef TUG_KERNELS_SGD_CUDA_H_
#define TUG_KERNELS_SGD_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/sgd.h"

namespace tug::kernels::cuda {

// SgdStep of kernels/sgd.h on the GPU, with its bits; delay compensation is the servers' alone. All
// pointers are to device memory. Returns when the kernel is queued. Errors: those of Launch
// (kernels/cuda_language.h).
absl::Status SgdStep(const SgdParams& params, const SgdArgs& args, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_SGD_CUDA_H_
