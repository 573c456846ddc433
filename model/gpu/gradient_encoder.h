// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_GPU_GRADIENT_ENCODER_H_
#define TUG_MODEL_GPU_GRADIENT_ENCODER_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace tug::kernels::cuda {
class Stream;
}  // namespace tug::kernels::cuda

namespace tug {

// Compresses gradients on the GPU before they are copied to the host, for a staged model
// (model/gpu/staged_model.h), which knows no codec. Used on the model's thread and device.
class GradientEncoder {
 public:
  virtual ~GradientEncoder() = default;

  // GPU memory that Allocate takes.
  virtual uint64_t device_bytes() const = 0;
  // Call once, before the first gradient. Errors: those of kernels/cuda/device/device.h.
  virtual absl::Status Allocate() = 0;

  // Queues on `stream`, always the same, the work that brings the needed form of the block's
  // gradient to host memory. `gradient`, in device memory aligned to 256 bytes, is complete for
  // this work and not overwritten before it is done. `bound`: host memory for the whole gradient
  // (Model::BindGradient). Errors: those of kernels/cuda/device/device.h.
  virtual absl::Status Send(int block, std::span<const float> gradient, std::span<float> bound,
                            const kernels::cuda::Stream& stream) = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_GPU_GRADIENT_ENCODER_H_
