#ifndef TUG_EXCHANGE_PUSH_ENCODER_H_
#define TUG_EXCHANGE_PUSH_ENCODER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/lease.h"
#include "compression/codec.h"
#include "exchange/codec_choice.h"
#include "exchange/codec_chooser.h"
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
    static constexpr uint8_t kUndecided = 255;
    uint8_t method = kUndecided;  // 0: FP32, else 1 + the index of the codec in CodecChoice::codecs
    bool feedback = false;        // what earlier ones left out goes with it
    Lease frame;                  // empty: not encoded yet, or FP32 in place
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
// then, all of it is in the residual again, and goes with the next. (With `auto`, not what went as
// FP32 with no residual: that is dropped as in a job without a codec.)
//
// With `auto` the codec of each segment is chosen when it is encoded, by what takes least time over
// its lane (codec_chooser.h), FP32 among them: what is left of the residual then goes with it, and
// a part of which all is FP32 without a residual is no frames. Where a residual has grown beyond
// max_residual times the gradient, by norm, the next encodings of the segment are by candidates of
// more bytes, until it is under half of that.
//
// Allocates nothing once every segment has been encoded and buffers suffice for what is on its way.
// Not thread-safe.
class PushEncoder {
 public:
  // REQUIRES: `table` and options.time outlive it; options.block_names has all blocks, if there is
  // a codec.
  PushEncoder(const ExchangeOptions& options, const SegmentTable& table,
              SendBuffers::NewBuffer new_buffer, std::function<bool(PeerId)> shares_memory = {});

  // Whether a segment of the part is encoded: then its payload is frames. With `auto`: whether it
  // may be.
  bool Encodes(const Partition& part, uint64_t clock) const;
  // No payload of the part is longer. (With `auto`, through shared memory, frames may be.)
  uint64_t MaxBytes(const Partition& part, uint64_t clock) const;

  // What of the part is encoded by what, unless that is in `encoded`, which is of this push. False:
  // nothing is, it goes as it is (`auto` only). REQUIRES: Encodes.
  bool Choose(const PushRequest& request, const Partition& part, EncodedPush& encoded);
  // The frames of the part: those that came with the push, or are kept in `encoded`; what is not
  // there yet is encoded now.
  // Empty: it goes as it is. REQUIRES: Encodes.
  Lease Encode(const PushRequest& request, const Partition& part, EncodedPush& encoded);
  // The part is in no version of the weights: what was encoded of it is left out, and goes into the
  // residual. Changes nothing the second time.
  void Restore(const PushRequest& request, const Partition& part, EncodedPush& encoded);

  // Residuals of virtual workers that are not among these are given up.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  // As Residuals::Copy and Restore.
  std::vector<SegmentResidual> CopyResiduals(uint32_t virtual_worker) const {
    return residuals_.Copy(virtual_worker);
  }
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
    residuals_.Restore(virtual_worker, std::move(residuals));
  }
  // Of the way to a lane, to be told what is sent; null: not `auto`, or in shared memory.
  LinkRate* LinkTo(uint32_t lane);
  // As CodecChooser::TakeProbe.
  bool TakeProbe(uint32_t lane) { return chooser_.has_value() && chooser_->TakeProbe(lane); }
  void KeepLanes(std::span<const uint32_t> lanes);
  // Nothing more is heard of what is on its way.
  void RestartLinks();
  // With `auto`: by lane, what is chosen of method_names(). Else empty.
  std::vector<CodecChooser::Chosen> chosen() const;
  std::vector<std::string> method_names() const;

  bool error_feedback() const { return choice_.error_feedback(); }
  // By virtual worker: the sum of squares of its residual. Empty, or 0, where there is none.
  std::span<const double> residual_squares() const { return residuals_.squares(); }

 private:
  const Segment& SegmentAt(const Partition& part, uint32_t i) const {
    return table_.segment(table_.id(part.block, part.first_segment + i));
  }
  bool SharesMemoryWith(uint32_t lane) const {
    return shares_memory_ != nullptr && shares_memory_(LanePeer(lane));
  }
  void ChooseOf(const PushRequest& request, const Segment& segment, uint32_t lane,
                EncodedPush::Part& part);
  // null: FP32.
  const SegmentCodec* CodecOf(const EncodedPush::Part& part) const {
    return part.method == 0 ? nullptr : choice_.codecs()[part.method - 1].codec.get();
  }
  size_t Write(const PushRequest& request, const Segment& segment, const EncodedPush::Part& part,
               std::span<std::byte> out);
  // With what the codec keeps behind it.
  std::span<float> ResidualOf(uint32_t virtual_worker, const Segment& segment);
  // How many candidates of more bytes stand before the chosen one in its place.
  uint8_t& RaisedOf(uint32_t virtual_worker, const Segment& segment);
  void BoundResidual(const PushRequest& request, const Segment& segment,
                     std::span<const float> elements);

  const SegmentTable& table_;
  const uint64_t seed_;
  const CodecChoice choice_;
  const double max_residual_;
  const TimeSource* const time_;
  const std::function<bool(PeerId)> shares_memory_;
  std::optional<CodecChooser> chooser_;       // with `auto`
  std::vector<std::vector<uint8_t>> raised_;  // by virtual worker and segment id
  SendBuffers buffers_;
  CodecScratch scratch_;
  Residuals residuals_;
};

// What the encodings of a step's pushes, and residuals, take of a worker's memory. `on_device`:
// pushes come with frames (device_encoder.h), and residuals are there.
uint64_t PredictPushEncoderBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                 const SegmentTable& table, uint32_t virtual_workers,
                                 bool on_device = false);

// What the copy of one virtual worker's residuals takes, that is written to a checkpoint.
uint64_t PredictResidualCopyBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                  const SegmentTable& table);

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_ENCODER_H_
