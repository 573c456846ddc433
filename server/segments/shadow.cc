// SPDX-License-Identifier: Apache-2.0
#include "server/segments/shadow.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "blocks/weight_changes.h"
#include "compression/codecs/frames.h"

namespace tug {
namespace {

// CodecKey::virtual_worker of data that is not a gradient.
constexpr uint32_t kNobody = ~uint32_t{0};

void Clear(std::span<std::byte> changes) {
  std::fill_n(changes.begin(), kFrameHeaderBytes, std::byte{0});
}

}  // namespace

ShadowMaker::ShadowMaker(const Options& options)
    : options_(options), codec_(ChangesCodec(options.density)) {}

size_t ShadowMaker::MaxChangesBytes(uint64_t elements) const {
  return MaxFrameBytes(&codec_, elements);
}

void ShadowMaker::Make(const Segment& segment, uint64_t version, std::span<const float> weights,
                       std::span<const float> before, std::span<float> after,
                       std::span<std::byte> changes) {
  const auto whole = [&] {
    std::copy(weights.begin(), weights.end(), after.begin());
    Clear(changes);
  };
  if (options_.whole_every > 0 && version % options_.whole_every == 0) return whole();
  difference_.resize(std::max(difference_.size(), weights.size()));
  for (size_t i = 0; i < weights.size(); ++i) {
    difference_[i] = weights[i] - before[i];
    after[i] = before[i];
  }
  const CodecKey key{.seed = options_.seed,
                     .block = segment.block,
                     .segment = segment.index,
                     .virtual_worker = kNobody,
                     .clock = version - 1};
  WriteFrame(kChangesCodecId, &codec_, key, std::span(difference_).first(weights.size()), {},
             changes, scratch_);
  std::span<const std::byte> bytes = changes;
  const std::optional<Frame> frame = TakeFrame(weights.size(), bytes);
  TUG_CHECK(frame.has_value());
  if (!frame->finite) return whole();
  TUG_CHECK(DecodeFrame(*frame, DecodeTo::kAdd, after));
}

std::span<const std::byte> ChangesIn(std::span<const std::byte> changes, uint64_t elements) {
  std::span<const std::byte> rest = changes;
  const std::optional<Frame> frame = TakeFrame(elements, rest);
  return frame.has_value() ? changes.first(changes.size() - rest.size())
                           : std::span<const std::byte>();
}

}  // namespace tug
