// SPDX-License-Identifier: Apache-2.0
#include "compression/codecs/frames.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compression/codecs/codecs.h"
#include "compression/dense/fp32.h"
#include "compression/dense/unaligned.h"

namespace tug {
size_t MaxFrameBytes(const SegmentCodec* codec, size_t elements) {
  return FrameBytes(codec == nullptr ? elements * sizeof(float) : codec->MaxEncodedBytes(elements));
}

size_t WriteFrame(uint8_t id, const SegmentCodec* codec, const CodecKey& key,
                  std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> out, CodecScratch& scratch) {
  TUG_CHECK_GE(out.size(), MaxFrameBytes(codec, elements.size()));
  const std::span<std::byte> encoding = out.subspan(kFrameHeaderBytes);
  size_t bytes = 0;
  if (codec == nullptr) {
    bytes = EncodeFp32(elements, residual, encoding);
  } else {
    bytes = residual.empty()
                ? codec->Encode(key, elements, encoding, scratch)
                : codec->EncodeWithResidual(key, elements, residual, encoding, scratch);
  }
  return FinishFrame(id, bytes, out);
}

size_t FinishFrame(uint8_t id, size_t encoding_bytes, std::span<std::byte> out) {
  const auto length = static_cast<uint32_t>(encoding_bytes);
  std::memcpy(out.data(), &length, sizeof(length));
  out[4] = std::byte{id};
  out[5] = std::byte{static_cast<uint8_t>(encoding_bytes > 0 ? 0 : 1)};
  out[6] = out[7] = std::byte{0};
  const size_t frame_bytes = FrameBytes(encoding_bytes);
  std::fill(out.begin() + static_cast<ptrdiff_t>(kFrameHeaderBytes + encoding_bytes),
            out.begin() + static_cast<ptrdiff_t>(frame_bytes), std::byte{0});
  return frame_bytes;
}

std::optional<Frame> TakeFrame(size_t elements, std::span<const std::byte>& bytes) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  const auto header = LoadOnce<uint64_t>(bytes.data());
  const uint64_t length = header & 0xffffffff;
  const auto codec = static_cast<uint8_t>(header >> 32);
  const uint64_t rest = header >> 40;
  if (rest > 1 || FrameBytes(length) > bytes.size()) return std::nullopt;
  Frame frame{codec, rest == 0, bytes.subspan(kFrameHeaderBytes, length)};
  if (codec != 0 && DecoderOf(codec) == nullptr) return std::nullopt;
  if (codec == 0 && (!frame.finite || length != elements * sizeof(float))) return std::nullopt;
  if (codec != 0 && frame.finite != (length > 0)) return std::nullopt;
  if (length > MostEncodingBytes(elements)) return std::nullopt;
  bytes = bytes.subspan(FrameBytes(length));
  return frame;
}

bool DecodeFrame(const Frame& frame, DecodeTo to, std::span<float> elements) {
  if (!frame.finite) return false;
  if (frame.codec == 0) return DecodeFp32(frame.encoding, to, elements);
  return DecoderOf(frame.codec)->Decode(frame.encoding, to, elements);
}

}  // namespace tug
