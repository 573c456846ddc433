// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_CUDA_DEVICE_H_
#define TUG_MODEL_BACKEND_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/device.h"
#include "model/backend.h"

namespace tug {

// Whether passes that recur with the same arguments are launched as one CUDA graph each
// (model/backend/pass_graphs.h). Without dropout, the passes of every step recur while weights and
// gradients stay bound to the same memory. Not used with several GPUs per worker: capturing a graph
// allocates memory while the other GPUs wait.
enum class GraphUse {
  kNever,
  kWhereLaunchesDominate,  // if the GPU waits for the host: kernels are short
  kAlways,
};

// A GPU that computes models. Its backends queue on one stream and share one thread at a time. They
// may outlive the device.
class CudaDevice : public ComputeDevice {
 public:
  // Stream of all work of its models. Synchronize with it through events.
  virtual const kernels::cuda::Stream& compute_stream() const = 0;
  // Number of passes launched as graphs.
  virtual uint64_t graph_launches() const = 0;
};

// Opens GPU number `device` and makes it the calling thread's device (kernels/cuda/device/device.h:
// UseDevice). Errors: UNAVAILABLE "no GPU ..." (also in builds without CUDA); others of
// kernels/cuda/device/device.h.
absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(
    int device, GraphUse graphs = GraphUse::kWhereLaunchesDominate);

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_CUDA_DEVICE_H_
