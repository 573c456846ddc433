// SPDX-License-Identifier: Apache-2.0
#include "server/pushes/push_payload.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "blocks/runs.h"

namespace tug {
namespace {

uint32_t FirstId(const WireHeader& header, const SegmentTable& table) {
  return table.id(header.block, header.first_segment);
}

uint64_t Elements(const WireHeader& header, const SegmentTable& table) {
  const uint32_t first = FirstId(header, table);
  return table.segment(first + header.segment_count - 1).end - table.segment(first).begin;
}

bool TakeFrames(const Message& message, const SegmentTable& table, std::vector<Frame>& frames) {
  std::span<const std::byte> rest = message.payload.bytes();
  const uint32_t first = FirstId(message.header, table);
  for (uint32_t id = first; id < first + message.header.segment_count; ++id) {
    const std::optional<Frame> frame = TakeFrame(table.segment(id).elements(), rest);
    if (!frame.has_value()) return false;
    frames.push_back(*frame);
  }
  return rest.empty();
}

}  // namespace

bool PushPayload::Take(Message message, const SegmentTable& table) {
  message_ = std::move(message);
  frames_.clear();
  const WireHeader& header = message_.header;
  const auto well_formed = [&] {
    switch (header.codec) {
      case Codec::kNone:
        return size_bytes() == Elements(header, table) * sizeof(float);
      case Codec::kRuns:
        return DecodeRuns(message_.payload.bytes(), Elements(header, table), /*with_values=*/true)
            .has_value();
      case Codec::kFrames:
        return TakeFrames(message_, table, frames_);
      case Codec::kBf16:
      case Codec::kInt8:
      case Codec::kChanges:
        return false;
    }
    return false;
  };
  const bool taken = well_formed();
  if (!taken) Release();
  return taken;
}

bool PushPayload::Expand(const SegmentTable& table) {
  if (message_.header.codec != Codec::kRuns) return true;
  const uint64_t elements = Elements(message_.header, table);
  const std::optional<EncodedRuns> runs =
      DecodeRuns(message_.payload.bytes(), elements, /*with_values=*/true);
  if (!runs.has_value()) return false;
  auto dense = std::make_shared<AlignedBuffer>(elements * sizeof(float));  // zeros
  Scatter(*runs, dense->floats());
  const std::span<const float> floats = std::as_const(*dense).floats();
  message_.payload = Lease(std::move(dense), floats);
  message_.home = Home::kReceiver;
  message_.header.codec = Codec::kNone;
  return true;
}

Contribution PushPayload::Part(uint32_t segment, const SegmentTable& table) const {
  const Lease& payload = message_.payload;
  const bool writable = message_.home == Home::kReceiver;
  const uint32_t first = FirstId(message_.header, table);
  if (message_.header.codec != Codec::kFrames) {
    const uint64_t begin = table.segment(segment).begin - table.segment(first).begin;
    return {.payload = payload.Slice(begin * sizeof(float), table.segment(segment).bytes()),
            .writable = writable};
  }
  const Frame& frame = frames_[segment - first];
  const auto offset = static_cast<size_t>(frame.encoding.data() - payload.bytes().data());
  return {.payload = payload.Slice(offset, frame.encoding.size()),
          .codec = frame.codec,
          .finite = frame.finite,
          .writable = writable};
}

}  // namespace tug
