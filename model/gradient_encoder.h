#ifndef TUG_MODEL_GRADIENT_ENCODER_H_
#define TUG_MODEL_GRADIENT_ENCODER_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace tug::kernels::cuda {
class Stream;
}  // namespace tug::kernels::cuda

namespace tug {

// What makes fewer bytes of gradients on the GPU, before they are copied to the host, for a model
// that stages them (model/staged_model.h), which knows no codec. For the model's thread and device.
class GradientEncoder {
 public:
  virtual ~GradientEncoder() = default;

  // Of the GPU's memory: what Allocate takes.
  virtual uint64_t device_bytes() const = 0;
  // Once, before the first gradient. Errors: those of kernels/device.h.
  virtual absl::Status Allocate() = 0;

  // Queues on `stream`, the same each time, what brings to the host's memory whatever is wanted of
  // the block's gradient there. `gradient`, in device memory at a boundary of 256 bytes, is
  // complete for what is queued, and is not written before that is done. `bound`: where the host
  // has memory for all of it (Model::BindGradient). Errors: those of kernels/device.h.
  virtual absl::Status Send(int block, std::span<const float> gradient, std::span<float> bound,
                            const kernels::cuda::Stream& stream) = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_GRADIENT_ENCODER_H_
