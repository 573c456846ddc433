// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/push_encoder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "compression/codecs/frames.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr uint64_t kTypicalElements = 262144;  // segment size for the first estimates
constexpr uint64_t kBoundEvery = 8;            // pushes of a segment per check, unless raised

// Starts with the candidates' maximum sizes: they have not encoded anything yet.
std::optional<CodecChooser> ChooserOf(const PushCodecConfig& config, const CodecChoice& choice,
                                      uint64_t elements) {
  if (!config.has_auto_()) return std::nullopt;
  std::vector<double> bytes_per_element = {sizeof(float)};
  for (const CodecChoice::Candidate& candidate : choice.codecs()) {
    bytes_per_element.push_back(static_cast<double>(candidate.codec->MaxEncodedBytes(elements)) /
                                static_cast<double>(elements));
  }
  return CodecChooser(bytes_per_element);
}

// Upper bound on the frame of `elements` elements. `codec`: the choice's codec for the segment;
// null: FP32. With `auto`: the maximum over all candidates and FP32, which may carry a residual.
uint64_t MostFrameBytes(const CodecChoice& choice, const SegmentCodec* codec, uint64_t elements) {
  uint64_t most = MaxFrameBytes(codec, elements);
  if (codec == nullptr || !choice.is_auto()) return most;
  most = std::max(most, MaxFrameBytes(nullptr, elements));
  for (const CodecChoice::Candidate& candidate : choice.codecs()) {
    most = std::max(most, MaxFrameBytes(candidate.codec.get(), elements));
  }
  return most;
}

// Size of a segment's residual and codec state.
uint64_t ResidualBytes(const SegmentCodec& codec, const Segment& segment) {
  return segment.bytes() + codec.StateFloats(segment.elements()) * sizeof(float);
}

}  // namespace

// Keeps all buffers ever needed: they return when pushes are committed, not when they are sent.
PushEncoder::PushEncoder(const ExchangeOptions& options, const SegmentTable& table,
                         SendBuffers::NewBuffer new_buffer,
                         std::function<bool(PeerId)> shares_memory)
    : table_(table),
      seed_(options.seed),
      choice_(options.comm.push_codec(), options.block_names),
      max_residual_(options.comm.push_codec().auto_().max_residual()),
      time_(options.time),
      shares_memory_(std::move(shares_memory)),
      chooser_(ChooserOf(options.comm.push_codec(), choice_, kTypicalElements)),
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
  if (chooser_.has_value() && SharesMemoryWith(part.lane)) return part.bytes();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    const Segment& segment = SegmentAt(part, i);
    bytes += MostFrameBytes(choice_, choice_.Of(segment, clock), segment.elements());
  }
  return bytes;
}

bool PushEncoder::Choose(const PushRequest& request, const Partition& part, EncodedPush& encoded) {
  encoded.segments.resize(table_.segments_in_block(part.block));
  bool encodes = false;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    EncodedPush::Part& kept = encoded.segments[part.first_segment + i];
    if (kept.method == EncodedPush::Part::kUndecided) {
      ChooseOf(request, SegmentAt(part, i), part.lane, kept);
    }
    encodes |= kept.method > 0 || kept.feedback;
  }
  return encodes;
}

Lease PushEncoder::Encode(const PushRequest& request, const Partition& part, EncodedPush& encoded) {
  if (!request.frames.empty()) {
    return request.frames.Of(part.first_segment, part.segment_count);
  }
  if (!Choose(request, part, encoded)) return Lease();
  const std::span<EncodedPush::Part> parts =
      std::span(encoded.segments).subspan(part.first_segment, part.segment_count);
  size_t max_size_bytes = 0;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    max_size_bytes += MaxFrameBytes(CodecOf(parts[i]), SegmentAt(part, i).elements());
  }
  SendBuffers::Payload payload = buffers_.Take(max_size_bytes);
  size_t size_bytes = 0;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    Lease& frame = parts[i].frame;
    const std::span<std::byte> out = payload.bytes.subspan(size_bytes);
    size_t frame_bytes = frame.size_bytes();
    if (frame_bytes > 0) {
      std::memcpy(out.data(), frame.bytes().data(), frame_bytes);
    } else {
      frame_bytes = Write(request, SegmentAt(part, i), parts[i], out);
    }
    frame = payload.lease.Slice(size_bytes, frame_bytes);
    size_bytes += frame_bytes;
  }
  if (error_feedback()) residuals_.SumSquares(request.virtual_worker);
  return payload.lease.Slice(0, size_bytes);
}

void PushEncoder::ChooseOf(const PushRequest& request, const Segment& segment, uint32_t lane,
                           EncodedPush::Part& part) {
  part.method = 0;
  if (choice_.Of(segment, request.clock) == nullptr) return;
  if (!chooser_.has_value()) {
    part.method = 1;
    part.feedback = error_feedback();
    return;
  }
  const bool shares_memory = SharesMemoryWith(lane);
  const uint32_t method = chooser_->Choose(lane, shares_memory, segment.elements(),
                                           request.clock + request.virtual_worker);
  const bool keeps = residuals_.SquaresOf(request.virtual_worker, segment) > 0;
  const uint32_t raised = keeps ? RaisedOf(request.virtual_worker, segment) : 0;
  part.method = static_cast<uint8_t>(method - std::min(method, raised));
  part.feedback = part.method > 0 || keeps;
}

size_t PushEncoder::Write(const PushRequest& request, const Segment& segment,
                          const EncodedPush::Part& part, std::span<std::byte> out) {
  const SegmentCodec* const codec = CodecOf(part);
  const uint8_t id = codec == nullptr ? 0 : choice_.codecs()[part.method - 1].id;
  const CodecKey key = KeyOf(seed_, segment, request.virtual_worker, request.clock);
  const std::span<const float> elements =
      request.gradient.floats().subspan(segment.begin, segment.elements());
  if (!part.feedback) return WriteFrame(id, codec, key, elements, {}, out, scratch_);
  // The first encoding is slower: it touches new memory. It is not measured.
  const bool measures =
      chooser_.has_value() && part.method > 0 && residuals_.Has(request.virtual_worker, segment);
  const std::span<float> residual = ResidualOf(request.virtual_worker, segment);
  double seconds = 0;
  size_t bytes = 0;
  {
    const ElapsedSeconds elapsed(measures ? time_ : nullptr, seconds);
    bytes = WriteFrame(id, codec, key, elements, residual, out, scratch_);
    residuals_.SumSquaresOf(request.virtual_worker, segment);
  }
  if (measures && bytes > kFrameHeaderBytes) {
    chooser_->OnMade(part.method, segment.elements(), bytes, seconds);
  }
  if (chooser_.has_value()) BoundResidual(request, segment, elements);
  return bytes;
}

// The gradient's norm costs another pass over it, so most pushes skip the check.
void PushEncoder::BoundResidual(const PushRequest& request, const Segment& segment,
                                std::span<const float> elements) {
  uint8_t& raised = RaisedOf(request.virtual_worker, segment);
  if (raised == 0 && (request.clock + segment.index) % kBoundEvery != 0) return;
  const double squares = residuals_.SquaresOf(request.virtual_worker, segment);
  const double most = max_residual_ * max_residual_ *
                      kernels::SumOfSquares(elements.data(), static_cast<int64_t>(elements.size()));
  if (squares > most) {
    raised = static_cast<uint8_t>(std::min<size_t>(raised + 1, choice_.codecs().size()));
  } else if (squares <= most / 4) {
    raised = 0;
  }
}

uint8_t& PushEncoder::RaisedOf(uint32_t virtual_worker, const Segment& segment) {
  if (virtual_worker >= raised_.size()) raised_.resize(virtual_worker + 1);
  raised_[virtual_worker].resize(table_.size());
  return raised_[virtual_worker][table_.id(segment.block, segment.index)];
}

void PushEncoder::GiveUpAllBut(std::span<const uint32_t> virtual_workers) {
  residuals_.GiveUpAllBut(virtual_workers);
  for (uint32_t virtual_worker = 0; virtual_worker < raised_.size(); ++virtual_worker) {
    const bool stays = std::find(virtual_workers.begin(), virtual_workers.end(), virtual_worker) !=
                       virtual_workers.end();
    if (!stays) raised_[virtual_worker].clear();
  }
}

LinkRate* PushEncoder::LinkTo(uint32_t lane) {
  return chooser_.has_value() && !SharesMemoryWith(lane) ? &chooser_->link(lane) : nullptr;
}

void PushEncoder::KeepLanes(std::span<const uint32_t> lanes) {
  if (chooser_.has_value()) chooser_->KeepLanes(lanes);
}

void PushEncoder::RestartLinks() {
  if (chooser_.has_value()) chooser_->RestartLinks();
}

std::vector<CodecChooser::Chosen> PushEncoder::chosen() const {
  return chooser_.has_value() ? chooser_->chosen() : std::vector<CodecChooser::Chosen>();
}

std::vector<std::string> PushEncoder::method_names() const {
  if (!chooser_.has_value()) return {};
  std::vector<std::string> names = {"fp32"};
  for (const CodecChoice::Candidate& candidate : choice_.codecs()) names.push_back(candidate.name);
  return names;
}

std::span<float> PushEncoder::ResidualOf(uint32_t virtual_worker, const Segment& segment) {
  const size_t state_floats = choice_.AfterWarmup(segment)->StateFloats(segment.elements());
  return residuals_.Of(virtual_worker, segment, state_floats);
}

void PushEncoder::Restore(const PushRequest& request, const Partition& part, EncodedPush& encoded) {
  if (!error_feedback() || encoded.segments.empty() || !request.frames.empty()) return;
  for (uint32_t i = 0; i < part.segment_count; ++i) {
    EncodedPush::Part& kept = encoded.segments[part.first_segment + i];
    if (!kept.feedback || kept.frame.size_bytes() == 0) continue;
    if (std::exchange(kept.restored, true)) continue;
    const Segment& segment = SegmentAt(part, i);
    std::span<const std::byte> bytes = kept.frame.bytes();
    const std::optional<Frame> frame = TakeFrame(segment.elements(), bytes);
    TUG_CHECK(frame.has_value());
    if (!frame->finite) continue;
    const std::span<float> residual =
        ResidualOf(request.virtual_worker, segment).first(segment.elements());
    if (!DecodeFrame(*frame, DecodeTo::kAdd, residual)) {  // FP32 frame that is not finite
      TUG_CHECK_EQ(frame->codec, 0);
      std::fill(residual.begin(), residual.end(), 0.0f);
    }
    residuals_.SumSquaresOf(request.virtual_worker, segment);
  }
  residuals_.SumSquares(request.virtual_worker);
}

uint64_t PredictPushEncoderBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                 const SegmentTable& table, uint32_t virtual_workers,
                                 bool on_device) {
  const CodecChoice choice(codec, BlockNames(blocks));
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    const SegmentCodec* const encodes = choice.AfterWarmup(segment);
    if (on_device ? choice.Encodes(table, segment.block) : encodes != nullptr) {
      bytes += MostFrameBytes(choice, encodes, segment.elements());
    }
    if (encodes != nullptr && choice.error_feedback() && !on_device) {
      bytes += ResidualBytes(*encodes, segment);
    }
  }
  return virtual_workers * bytes;
}

uint64_t PredictResidualCopyBytes(const PushCodecConfig& codec, const BlockTable& blocks,
                                  const SegmentTable& table) {
  const CodecChoice choice(codec, BlockNames(blocks));
  if (!choice.error_feedback()) return 0;
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    const SegmentCodec* const encodes = choice.AfterWarmup(segment);
    if (encodes != nullptr) bytes += ResidualBytes(*encodes, segment);
  }
  return bytes;
}

}  // namespace tug
