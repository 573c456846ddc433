// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_PUSH_ENCODER_H_
#define TUG_EXCHANGE_ENCODE_PUSH_ENCODER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "blocks/codec_choice.h"
#include "blocks/partitioner.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "compression/codec.h"
#include "exchange/encode/codec_chooser.h"
#include "exchange/encode/residuals.h"

namespace tug {

// Frames of an encoded push, by segment. Kept from the first send of a part until the push is
// committed or dropped, so that a resend has the same bytes however it is partitioned.
struct EncodedPush {
  struct Part {
    static constexpr uint8_t kUndecided = 255;
    uint8_t method = kUndecided;  // 0: FP32, else 1 + the index of the codec in CodecChoice::codecs
    bool feedback = false;        // the frame includes the residual of earlier pushes
    Lease frame;                  // empty: not encoded yet, or plain FP32 sent in place
    bool restored = false;
  };
  std::vector<Part> segments;  // by index within the block; empty: nothing is encoded
};

// Makes the payloads of pushes with comm.push_codec (compression/codecs/frames.h). Keeps the
// error-feedback residual (FP32) of each virtual worker and encoded segment, and adds it to the
// next push.
//
// A residual depends on all earlier pushes: encode the pushes of a block and virtual worker in
// clock order, and each segment of a push once. Two pushes may be in flight together (SSP, ASP):
// the residual of the earlier one goes with the later one, committed or not. If the earlier one is
// then dropped, all of it returns to the residual and goes with the next push. (With `auto`,
// segments sent as FP32 without a residual do not return: they are dropped as in a job without a
// codec.)
//
// With `auto`, the codec of each segment is chosen when it is encoded, as the fastest one over its
// lane (codec_chooser.h). FP32 is a candidate: it carries what is left of the residual. A part that
// is all FP32 without a residual has no frames. If a residual exceeds max_residual times the
// gradient, by norm, the next encodings of the segment use candidates with more bytes, until it
// falls below half of that.
//
// Allocates nothing once every segment has been encoded and the buffers cover the pushes in flight.
// Not thread-safe.
class PushEncoder {
 public:
  // REQUIRES: `table` and options.time outlive the encoder; with a codec, options.block_names names
  // all blocks.
  PushEncoder(const ExchangeOptions& options, const SegmentTable& table,
              SendBuffers::NewBuffer new_buffer, std::function<bool(PeerId)> shares_memory = {});

  // Whether the part has encoded segments, so that its payload is frames. With `auto`: whether it
  // may have.
  bool Encodes(const Partition& part, uint64_t clock) const;
  // Upper bound on the part's payload. (With `auto`, frames sent through shared memory may be
  // longer.)
  uint64_t MaxBytes(const Partition& part, uint64_t clock) const;

  // Chooses the codecs of the part's segments, unless `encoded`, which belongs to this push, has
  // them. False (`auto` only): no segment is encoded; the part is sent in place. REQUIRES: Encodes.
  bool Choose(const PushRequest& request, const Partition& part, EncodedPush& encoded);
  // Frames of the part: those that came with the push, or those kept in `encoded`; missing ones are
  // made now. Empty: the part is sent in place. REQUIRES: Encodes.
  Lease Encode(const PushRequest& request, const Partition& part, EncodedPush& encoded);
  // The part was dropped, so no version of the weights has it: returns its encoded gradient to the
  // residual. Idempotent.
  void Restore(const PushRequest& request, const Partition& part, EncodedPush& encoded);

  // Discards the residuals of all other virtual workers.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  // See Residuals::Copy and Restore.
  std::vector<SegmentResidual> CopyResiduals(uint32_t virtual_worker) const {
    return residuals_.Copy(virtual_worker);
  }
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
    residuals_.Restore(virtual_worker, std::move(residuals));
  }
  // Rate of the link to a lane, to record sends in. Null: not `auto`, or shared memory.
  LinkRate* LinkTo(uint32_t lane);
  // See CodecChooser::TakeProbe.
  bool TakeProbe(uint32_t lane) { return chooser_.has_value() && chooser_->TakeProbe(lane); }
  void KeepLanes(std::span<const uint32_t> lanes);
  // Messages in flight will not be acknowledged.
  void RestartLinks();
  // With `auto`: the choice for each lane, an index into method_names(). Else empty.
  std::vector<CodecChooser::Chosen> chosen() const;
  std::vector<std::string> method_names() const;

  bool error_feedback() const { return choice_.error_feedback(); }
  // Sum of squares of the residual, by virtual worker. Missing or 0: no residual.
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
  // Null: FP32.
  const SegmentCodec* CodecOf(const EncodedPush::Part& part) const {
    return part.method == 0 ? nullptr : choice_.codecs()[part.method - 1].codec.get();
  }
  size_t Write(const PushRequest& request, const Segment& segment, const EncodedPush::Part& part,
               std::span<std::byte> out);
  // The residual, followed by the codec's state.
  std::span<float> ResidualOf(uint32_t virtual_worker, const Segment& segment);
  // How many candidates closer to FP32 than the chosen one to use instead of it.
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

// Predicts a worker's memory for the encodings of one step's pushes, and for residuals.
// `on_device`: the GPU makes the frames (device_encoder.h) and holds the residuals, which then do
// not count.
uint64_t PredictPushEncoderBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                 const SegmentTable& table, uint32_t virtual_workers,
                                 bool on_device = false);

// Predicts the memory of the copy of one virtual worker's residuals that is written to a
// checkpoint.
uint64_t PredictResidualCopyBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                  const SegmentTable& table);

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_PUSH_ENCODER_H_
