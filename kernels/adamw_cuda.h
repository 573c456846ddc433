#ifndef TUG_KERNELS_ADAMW_CUDA_H_
#define TUG_KERNELS_ADAMW_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/adamw.h"

namespace tug::kernels {

// AdamWStep of kernels/adamw.h on the GPU. Built under --config=cuda only (see tug_cuda_library).
//   g, w_in, w_out, m, v   [n] in device memory; w_out is w_in itself or does not overlap it
//   stream                 a cudaStream_t; nullptr: the default stream
// Returns when the kernel is queued, not when it is done. UnavailableError where there is no usable
// GPU or driver, InternalError for what else the launch reports. Thread-safe.
absl::Status AdamWStepCuda(int64_t n, const AdamWParams& params, const float* g, const float* w_in,
                           float* w_out, float* m, float* v, void* stream);

// OkStatus when device 0 can be used; otherwise UnavailableError with the reason ("no GPU: ...").
// Never ends the process. Thread-safe.
absl::Status CheckGpu();

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ADAMW_CUDA_H_
