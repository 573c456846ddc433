#ifndef TUG_MODEL_CUDA_OP_PROFILE_H_
#define TUG_MODEL_CUDA_OP_PROFILE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "model/op_profile.h"

namespace tug {

// The GPU's time for each operation: from when its stream gets to it until it is done, by events
// around what is queued between Begin and End. Where the host queues more slowly than the GPU
// computes, the GPU's wait for it counts.
class CudaOpProfile final : public OpProfile {
 public:
  // `stream` outlives this: that of the model (CudaDevice::compute_stream).
  explicit CudaOpProfile(const kernels::cuda::Stream& stream) : stream_(stream) {}

  void Begin() override { Mark(); }
  void End(Op op, const OpWork& work) override;

  // Waits for what was queued, and adds it to `entries`. Errors: those of events so far, or of what
  // is waited for.
  absl::Status Collect();

 private:
  struct Operation {
    Op op;
    OpWork work;
  };

  void Mark();
  absl::Status MarkNext();

  const kernels::cuda::Stream& stream_;
  std::vector<kernels::cuda::Event> events_;  // kept for the next steps
  size_t marks_ = 0;                          // events since the last Collect, two an operation
  std::vector<Operation> operations_;         // since then
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_MODEL_CUDA_OP_PROFILE_H_
