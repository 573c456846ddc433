// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_CUDA_OP_PROFILE_H_
#define TUG_MODEL_BACKEND_CUDA_OP_PROFILE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"
#include "model/op_profile.h"

namespace tug {

// GPU time of each operation, from when the stream reaches it until it is done, measured by events
// around the work queued between Begin and End. If the host queues more slowly than the GPU
// computes, this includes the GPU's wait for the host.
class CudaOpProfile final : public OpProfile {
 public:
  // `stream`: that of the model (CudaDevice::compute_stream); must outlive this.
  explicit CudaOpProfile(const kernels::cuda::Stream& stream) : stream_(stream) {}

  void Begin() override { Mark(); }
  void End(Op op, const OpWork& work) override;

  // Waits for queued work and adds it to `entries`. Errors: earlier ones of events, or of the wait.
  absl::Status Collect();

 private:
  struct Operation {
    Op op;
    OpWork work;
  };

  void Mark();
  absl::Status MarkNext();

  const kernels::cuda::Stream& stream_;
  std::vector<kernels::cuda::Event> events_;  // reused in later steps
  size_t marks_ = 0;                          // events since the last Collect, two per operation
  std::vector<Operation> operations_;         // since the last Collect
  absl::Status status_;
};

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_CUDA_OP_PROFILE_H_
