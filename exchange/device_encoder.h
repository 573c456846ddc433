#ifndef TUG_EXCHANGE_DEVICE_ENCODER_H_
#define TUG_EXCHANGE_DEVICE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "model/gradient_encoder.h"
#include "proto/job.pb.h"

namespace tug {

// PushEncoder for gradients that are on a GPU: of each segment the frame that it would make of the
// same gradient, to the bit, so that encodings alone cross to the host. Residuals are on the GPU.
// A residual is of all steps before: those of a virtual worker and block are sent in order, each
// step once.
//
//   Start(virtual worker, clock); Bind(block, memory)
//   Model::Backward(block) of the last micro-batch, which calls Send
//   Model::AwaitGradient(block)
//   Take(block): frames, in that memory
//
// What is pushed as FP32 is copied to where the gradient is bound; of blocks of which nothing is
// encoded, and in the steps of codec.warmup_steps, all of it. Elements of encoded segments there
// are not written. For one thread, the model's.
class DeviceEncoder : public GradientEncoder {
 public:
  // Of memory for the frames of a block; 0: nothing of it is ever encoded.
  virtual size_t FramesBytes(uint32_t block) const = 0;

  // What is sent from here on is of this step.
  virtual void Start(uint32_t virtual_worker, uint64_t clock) = 0;
  // Where the block's next frames go. REQUIRES: FramesBytes, which nobody reads until Take.
  virtual void Bind(uint32_t block, std::span<std::byte> frames) = 0;
  // Completes the block's frames, and returns PushFrames::begins; empty: nothing of it is encoded.
  // REQUIRES: what Send has queued is done; once for each Send.
  virtual std::vector<uint64_t> Take(uint32_t block) = 0;

  // Residuals of virtual workers that are not among these are given up, and their memory.
  virtual void GiveUpAllBut(std::span<const uint32_t> virtual_workers) = 0;
  // As Residuals::Copy and Restore (exchange/residuals.h). Copy waits for what has been sent.
  virtual absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t virtual_worker) = 0;
  virtual absl::Status RestoreResiduals(uint32_t virtual_worker,
                                        std::span<const SegmentResidual> residuals) = 0;
  // Of the virtual worker's residual, by what was taken last; 0: there is none.
  virtual double ResidualSquares(uint32_t virtual_worker) const = 0;
};

struct DeviceEncoderOptions {
  PushCodecConfig codec;                      // all fields filled; HasGpuKernels
  std::vector<std::string> block_names = {};  // BlockNames
  const SegmentTable* table = nullptr;        // outlives the encoder
  // Those carried at first: memory for their residuals is there from the beginning. For others it
  // is allocated with the first of them that is sent or restored.
  std::vector<uint32_t> virtual_workers = {};
};

// Makes one. Programs choose. UNIMPLEMENTED: none in this build.
using DeviceEncoderMaker =
    std::function<absl::StatusOr<std::unique_ptr<DeviceEncoder>>(DeviceEncoderOptions)>;

}  // namespace tug

#endif  // TUG_EXCHANGE_DEVICE_ENCODER_H_
