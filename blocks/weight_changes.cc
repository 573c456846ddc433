// SPDX-License-Identifier: Apache-2.0
#include "blocks/weight_changes.h"

#include <algorithm>
#include <optional>

#include "blocks/weights_payload.h"
#include "compression/codecs/frames.h"

namespace tug {

TopKCodec ChangesCodec(double density) {
  PushCodecConfig config;
  config.mutable_top_k()->set_density(density);
  return TopKCodec(config);
}

HeldWeights::HeldWeights(const SegmentTable& table)
    : table_(table), destinations_(table.num_blocks()), versions_(table.size(), kNoVersion) {}

void HeldWeights::SetDestination(uint32_t block, std::span<const float> destination) {
  if (destinations_[block] == destination.data()) return;
  destinations_[block] = destination.data();
  SetVersion({.block = block, .segment_count = table_.segments_in_block(block)}, kNoVersion);
}

void HeldWeights::SetVersion(const Partition& part, uint64_t version) {
  const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
  std::fill(first, first + part.segment_count, version);
}

uint64_t HeldWeights::Version(const Partition& part) const {
  const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
  const bool same = std::all_of(first, first + part.segment_count,
                                [&](uint64_t version) { return version == *first; });
  return same ? *first : kNoVersion;
}

bool HeldWeights::Take(const Partition& part, const WireHeader& header,
                       std::span<const std::byte> payload, std::span<float> weights) {
  if (header.codec == Codec::kNone) {
    if (payload.size() != weights.size_bytes()) return false;
    DecodeWeights(Codec::kNone, table_, table_.id(part.block, part.first_segment),
                  part.segment_count, payload, weights);
  } else {
    const uint64_t held = Version(part);
    const bool follows = held != kNoVersion && held + 1 == header.version;
    if (header.codec != Codec::kChanges || !follows || !HasFrames(part, payload)) return false;
    if (!AddFrames(part, payload, weights)) {
      SetVersion(part, kNoVersion);
      return false;
    }
  }
  SetVersion(part, header.version);
  return true;
}

bool HeldWeights::HasFrames(const Partition& part, std::span<const std::byte> payload) const {
  const uint32_t first = table_.id(part.block, part.first_segment);
  for (uint32_t id = first; id < first + part.segment_count; ++id) {
    const std::optional<Frame> frame = TakeFrame(table_.segment(id).elements(), payload);
    if (!frame.has_value() || frame->codec != kChangesCodecId || !frame->finite) return false;
  }
  return payload.empty();
}

// Parses the frames again: a sender's memory may have changed since HasFrames.
bool HeldWeights::AddFrames(const Partition& part, std::span<const std::byte> payload,
                            std::span<float> weights) const {
  const uint32_t first = table_.id(part.block, part.first_segment);
  for (uint32_t id = first; id < first + part.segment_count; ++id) {
    const uint64_t elements = table_.segment(id).elements();
    const std::optional<Frame> frame = TakeFrame(elements, payload);
    if (!frame.has_value() || frame->codec != kChangesCodecId) return false;
    if (!DecodeFrame(*frame, DecodeTo::kAdd, weights.first(elements))) return false;
    weights = weights.subspan(elements);
  }
  return true;
}

}  // namespace tug
