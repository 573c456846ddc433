#ifndef TUG_MODEL_CUDA_DEVICE_H_
#define TUG_MODEL_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "model/backend.h"

namespace tug {

// A GPU that models are computed on. Its backends are for one thread at a time, all together: they
// queue on one stream. They need not go before it does.
class CudaDevice : public ComputeDevice {
 public:
  // Where everything is queued that its models do: what waits for them, or what they are to wait
  // for, does so by events on this stream.
  virtual const kernels::cuda::Stream& compute_stream() const = 0;
};

// The GPU of that number, which the calling thread uses from here on (kernels/device.h: UseDevice).
// Errors: UNAVAILABLE "no GPU ...", in a build without CUDA too; others of kernels/device.h.
absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(int device);

}  // namespace tug

#endif  // TUG_MODEL_CUDA_DEVICE_H_
