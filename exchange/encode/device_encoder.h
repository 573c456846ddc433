// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_DEVICE_ENCODER_H_
#define TUG_EXCHANGE_ENCODE_DEVICE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "model/gpu/gradient_encoder.h"
#include "proto/job.pb.h"

namespace tug {

// PushEncoder for gradients on a GPU. Makes bit-identical frames of each segment, so that only
// encoded data crosses to the host. Residuals stay on the GPU. A residual depends on all earlier
// steps: send the steps of a virtual worker and block in order, each once.
//
//   Start(virtual worker, clock); Bind(block, memory)
//   Model::Backward(block) of the last micro-batch, which calls Send
//   Model::AwaitGradient(block)
//   Take(block): frames, in that memory
//
// Segments pushed as FP32 are copied to the bound gradient; so are whole blocks without encoded
// segments, and all blocks during codec.warmup_steps. Elements of encoded segments are not written
// there. Single-threaded: call from the model's thread.
class DeviceEncoder : public GradientEncoder {
 public:
  // Size of the memory to bind for the frames of a block. 0: the block is never encoded.
  virtual size_t FramesBytes(uint32_t block) const = 0;

  // Sets the virtual worker and clock of the gradients sent from now on.
  virtual void Start(uint32_t virtual_worker, uint64_t clock) = 0;
  // Sets the memory of the block's next frames. REQUIRES: FramesBytes(block) bytes, not read until
  // Take.
  virtual void Bind(uint32_t block, std::span<std::byte> frames) = 0;
  // Completes the block's frames and returns PushFrames::begins; empty: nothing of the block is
  // encoded. Call once per Send. REQUIRES: the work queued by Send is complete.
  virtual std::vector<uint64_t> Take(uint32_t block) = 0;

  // Frees the residuals of all other virtual workers.
  virtual void GiveUpAllBut(std::span<const uint32_t> virtual_workers) = 0;
  // Like Residuals::Copy and Restore (exchange/encode/residuals.h). CopyResiduals waits for all
  // work queued by Send.
  virtual absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t virtual_worker) = 0;
  virtual absl::Status RestoreResiduals(uint32_t virtual_worker,
                                        std::span<const SegmentResidual> residuals) = 0;
  // Sum of squares of the virtual worker's residual, as of the newest Take; 0 without a residual.
  virtual double ResidualSquares(uint32_t virtual_worker) const = 0;
};

struct DeviceEncoderOptions {
  PushCodecConfig codec;                      // with defaults filled in; satisfies HasGpuKernels
  std::vector<std::string> block_names = {};  // BlockNames
  const SegmentTable* table = nullptr;        // outlives the encoder
  // Virtual workers that the worker runs at first; memory for their residuals is allocated up
  // front. For others it is allocated when they are first sent or restored.
  std::vector<uint32_t> virtual_workers = {};
};

// Factory of device encoders, chosen by the program. UNIMPLEMENTED: not available in this build.
using DeviceEncoderMaker =
    std::function<absl::StatusOr<std::unique_ptr<DeviceEncoder>>(DeviceEncoderOptions)>;

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_DEVICE_ENCODER_H_
