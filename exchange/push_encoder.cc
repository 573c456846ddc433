#include "exchange/push_encoder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "compression/frames.h"

namespace tug {

// Buffers come back when pushes are committed, not when they have been sent: as many are kept as
// were ever needed.
PushEncoder::PushEncoder(const ExchangeOptions& options, const SegmentTable& table,
                         SendBuffers::NewBuffer new_buffer)
    : table_(table),
      seed_(options.seed),
      choice_(options.comm.push_codec(), options.block_names),
      buffers_(std::numeric_limits<uint64_t>::max(), std::move(new_buffer)),
      residuals_(table) {
  TUG_CHECK(choice_.id() == 0 || options.block_names.size() == table.num_blocks());
}

bool PushEncoder::Encodes(const Partition& part, uint64_t clock) const {
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    if (choice_.Of(SegmentAt(part, i), clock) != nullptr) return true;
  }
  return false;
}

uint64_t PushEncoder::MaxBytes(const Partition& part, uint64_t clock) const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    const Segment& segment = SegmentAt(part, i);
    bytes += MaxFrameBytes(choice_.Of(segment, clock), segment.elements());
  }
  return bytes;
}

Lease PushEncoder::Encode(const PushRequest& request, const Partition& part, EncodedPush& encoded) {
  SendBuffers::Payload payload = buffers_.Take(MaxBytes(part, request.clock));
  encoded.segments.resize(table_.segments_in_block(part.block));
  size_t size_bytes = 0;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    Lease& frame = encoded.segments[part.first_segment + i].frame;
    const std::span<std::byte> out = payload.bytes.subspan(size_bytes);
    size_t frame_bytes = frame.size_bytes();
    if (frame_bytes > 0) {
      std::memcpy(out.data(), frame.bytes().data(), frame_bytes);
    } else {
      frame_bytes = Write(request, SegmentAt(part, i), out);
    }
    frame = payload.lease.Slice(size_bytes, frame_bytes);
    size_bytes += frame_bytes;
  }
  if (error_feedback()) residuals_.SumSquares(request.virtual_worker);
  return payload.lease.Slice(0, size_bytes);
}

size_t PushEncoder::Write(const PushRequest& request, const Segment& segment,
                          std::span<std::byte> out) {
  const SegmentCodec* const codec = choice_.Of(segment, request.clock);
  const CodecKey key = KeyOf(seed_, segment, request.virtual_worker, request.clock);
  const std::span<const float> elements =
      request.gradient.floats().subspan(segment.begin, segment.elements());
  const uint8_t id = codec == nullptr ? 0 : choice_.id();
  if (codec == nullptr || !error_feedback()) {
    return WriteFrame(id, codec, key, elements, {}, out, scratch_);
  }
  const std::span<float> residual = ResidualOf(request.virtual_worker, segment);
  const size_t bytes = WriteFrame(id, codec, key, elements, residual, out, scratch_);
  residuals_.SumSquaresOf(request.virtual_worker, segment);
  return bytes;
}

std::span<float> PushEncoder::ResidualOf(uint32_t virtual_worker, const Segment& segment) {
  const size_t state_floats = choice_.AfterWarmup(segment)->StateFloats(segment.elements());
  return residuals_.Of(virtual_worker, segment, state_floats);
}

void PushEncoder::Restore(const PushRequest& request, const Partition& part, EncodedPush& encoded) {
  if (!error_feedback() || encoded.segments.empty()) return;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    EncodedPush::Part& kept = encoded.segments[part.first_segment + i];
    if (kept.frame.size_bytes() == 0 || std::exchange(kept.restored, true)) continue;
    const Segment& segment = SegmentAt(part, i);
    std::span<const std::byte> bytes = kept.frame.bytes();
    const std::optional<Frame> frame = TakeFrame(segment.elements(), bytes);
    TUG_CHECK(frame.has_value());
    if (frame->codec == 0 || !frame->finite) continue;
    const std::span<float> residual = ResidualOf(request.virtual_worker, segment);
    TUG_CHECK(DecodeFrame(*frame, DecodeTo::kAdd, residual.first(segment.elements())));
    residuals_.SumSquaresOf(request.virtual_worker, segment);
  }
  residuals_.SumSquares(request.virtual_worker);
}

uint64_t PredictPushEncoderBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                 const SegmentTable& table, uint32_t virtual_workers) {
  const CodecChoice choice(codec, BlockNames(blocks));
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    const SegmentCodec* const encodes = choice.AfterWarmup(segment);
    if (encodes == nullptr) continue;
    bytes += MaxFrameBytes(encodes, segment.elements());
    if (!choice.error_feedback()) continue;
    bytes += segment.bytes() + encodes->StateFloats(segment.elements()) * sizeof(float);
  }
  return virtual_workers * bytes;
}

}  // namespace tug
