// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_PUSH_FRAMES_TEST_SUPPORT_H_
#define TUG_SERVER_SUMS_PUSH_FRAMES_TEST_SUPPORT_H_

// Payloads of encoded pushes, for tests of lanes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "compression/codecs/codecs.h"
#include "compression/codecs/frames.h"

namespace tug {

inline constexpr uint8_t kFp32Frame = 0;
inline constexpr uint8_t kBf16Frame = PushCodecConfig::kBf16;

// Encodes each segment of `segment_elements` (the last one may be shorter) as a frame, with the
// codecs `ids` in rotation.
inline std::vector<std::byte> EncodeFrames(std::span<const float> gradient, size_t segment_elements,
                                           const std::vector<uint8_t>& ids) {
  CodecScratch scratch;
  std::vector<std::byte> payload;
  for (size_t i = 0; !gradient.empty(); ++i) {
    const std::span<const float> segment =
        gradient.first(std::min(segment_elements, gradient.size()));
    const uint8_t id = ids[i % ids.size()];
    const SegmentCodec* const codec = id == kFp32Frame ? nullptr : DecoderOf(id);
    std::vector<std::byte> frame(MaxFrameBytes(codec, segment.size()));
    frame.resize(WriteFrame(id, codec, CodecKey(), segment, {}, frame, scratch));
    payload.insert(payload.end(), frame.begin(), frame.end());
    gradient = gradient.subspan(segment.size());
  }
  return payload;
}

// Wraps bytes as the payload of a message.
inline Lease LeaseOf(std::vector<std::byte> payload) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(payload));
  return Lease(owner, std::span<const std::byte>(*owner));
}

}  // namespace tug

#endif  // TUG_SERVER_SUMS_PUSH_FRAMES_TEST_SUPPORT_H_
