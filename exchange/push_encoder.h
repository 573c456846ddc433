#ifndef TUG_EXCHANGE_PUSH_ENCODER_H_
#define TUG_EXCHANGE_PUSH_ENCODER_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/lease.h"
#include "compression/codec.h"
#include "exchange/codec_choice.h"
#include "exchange/requests.h"
#include "exchange/residuals.h"
#include "exchange/segment_table.h"
#include "exchange/send_buffers.h"
#include "scheduler/partitioner.h"

namespace tug {

// What is kept of a push that is encoded, from the first sending of a part of it until it is
// committed or dropped: its frames, by segment, so that a repeat has the same bytes however it is
// cut.
struct EncodedPush {
  struct Part {
    Lease frame;  // empty: not encoded yet
    bool restored = false;
  };
  std::vector<Part> segments;  // by index within the block; empty: nothing is encoded
};

// Makes the payloads of pushes with comm.push_codec (compression/frames.h), and keeps what error
// feedback adds to the next ones: a residual, FP32, for each virtual worker and segment that has
// been encoded.
//
// A residual is of all pushes before, so those of a block and virtual worker are to be encoded in
// the order of their clocks; each segment of a push once. Two pushes may be on their way together
// (SSP, ASP): what the earlier one left out is in the later one, committed or not; if it is dropped
// then, all of it is in the residual again, and goes with the next.
//
// Allocates nothing once every segment has been encoded and buffers suffice for what is on its way.
// Not thread-safe.
class PushEncoder {
 public:
  // REQUIRES: `table` outlives it; options.block_names has all blocks, if there is a codec.
  PushEncoder(const ExchangeOptions& options, const SegmentTable& table,
              SendBuffers::NewBuffer new_buffer);

  // Whether a segment of the part is encoded: then its payload is frames.
  bool Encodes(const Partition& part, uint64_t clock) const;
  // No payload of the part is longer.
  uint64_t MaxBytes(const Partition& part, uint64_t clock) const;

  // The frames of the part: those that are kept in `encoded`, which is of this push; what is not
  // there yet is encoded now. REQUIRES: Encodes.
  Lease Encode(const PushRequest& request, const Partition& part, EncodedPush& encoded);
  // The part is in no version of the weights: what was encoded of it is left out, and goes into the
  // residual. Changes nothing the second time.
  void Restore(const PushRequest& request, const Partition& part, EncodedPush& encoded);

  // Residuals of virtual workers that are not among these are given up.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers) {
    residuals_.GiveUpAllBut(virtual_workers);
  }

  // As Residuals::Copy and Restore.
  std::vector<SegmentResidual> CopyResiduals(uint32_t virtual_worker) const {
    return residuals_.Copy(virtual_worker);
  }
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
    residuals_.Restore(virtual_worker, std::move(residuals));
  }

  bool error_feedback() const { return choice_.error_feedback(); }
  // By virtual worker: the sum of squares of its residual. Empty, or 0, where there is none.
  std::span<const double> residual_squares() const { return residuals_.squares(); }

 private:
  const Segment& SegmentAt(const Partition& part, uint32_t i) const {
    return table_.segment(table_.id(part.block, part.first_segment + i));
  }
  size_t Write(const PushRequest& request, const Segment& segment, std::span<std::byte> out);
  // With what the codec keeps behind it.
  std::span<float> ResidualOf(uint32_t virtual_worker, const Segment& segment);

  const SegmentTable& table_;
  const uint64_t seed_;
  const CodecChoice choice_;
  SendBuffers buffers_;
  CodecScratch scratch_;
  Residuals residuals_;
};

// What the encodings of a step's pushes, and residuals, take of a worker's memory.
uint64_t PredictPushEncoderBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                 const SegmentTable& table, uint32_t virtual_workers);

// What the copy of one virtual worker's residuals takes, that is written to a checkpoint.
uint64_t PredictResidualCopyBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                  const SegmentTable& table);

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_ENCODER_H_
