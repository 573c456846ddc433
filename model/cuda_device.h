#ifndef TUG_MODEL_CUDA_DEVICE_H_
#define TUG_MODEL_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "model/backend.h"

namespace tug {

// Whether passes that come again and again, argument by argument, are launched as one CUDA graph
// each (model/pass_graphs.h): without dropout those of every step, as long as weights and gradients
// are bound to the same memory. Not with several GPUs of a worker: a graph is made, and allocates,
// while the others wait for it.
enum class GraphUse {
  kNever,
  kWhereLaunchesDominate,  // where the GPU waits for the host: kernels are short
  kAlways,
};

// A GPU that models are computed on. Its backends are for one thread at a time, all together: they
// queue on one stream. They need not go before it does.
class CudaDevice : public ComputeDevice {
 public:
  // Where everything is queued that its models do: what waits for them, or what they are to wait
  // for, does so by events on this stream.
  virtual const kernels::cuda::Stream& compute_stream() const = 0;
  // Passes of its models that were launched as graphs so far.
  virtual uint64_t graph_launches() const = 0;
};

// The GPU of that number, which the calling thread uses from here on (kernels/device.h: UseDevice).
// Errors: UNAVAILABLE "no GPU ...", in a build without CUDA too; others of kernels/device.h.
absl::StatusOr<std::unique_ptr<CudaDevice>> NewCudaDevice(
    int device, GraphUse graphs = GraphUse::kWhereLaunchesDominate);

}  // namespace tug

#endif  // TUG_MODEL_CUDA_DEVICE_H_
