// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CODECS_FRAMES_H_
#define TUG_COMPRESSION_CODECS_FRAMES_H_

// Payload of a push with Codec::kFrames (proto/wire.h): one frame per segment, in order,
// little-endian:
//
//   uint32 bytes of the encoding | uint8 codec | uint8 1: not finite, else 0 | uint16 0 |
//   the encoding | zeros up to a multiple of 8 bytes
//
// The codec is an id of compression/codecs/codecs.h; 0 is FP32, unencoded. A segment with an
// element that is not finite has no encoding: its frame has the flag, and 0 bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compression/codec.h"

namespace tug {

inline constexpr size_t kFrameHeaderBytes = 8;
// Bound for every codec, also with few elements; a longer encoding is malformed.
constexpr uint64_t MostEncodingBytes(uint64_t elements) { return 8 * elements + 128; }

// Bytes of a frame around an encoding of this length.
constexpr size_t FrameBytes(size_t encoding_bytes) {
  return kFrameHeaderBytes + (encoding_bytes + 7) / 8 * 8;
}
// Upper bound for frames of this many elements by this codec (null: FP32).
size_t MaxFrameBytes(const SegmentCodec* codec, size_t elements);

// Writes a segment's frame to the front of `out`, and returns its length. `id`, `codec`: the
// encoder; 0 and null: FP32. `residual`: empty, or the segment's error-feedback state
// (SegmentCodec::EncodeWithResidual), which is consumed and replaced; FP32 leaves zeros. REQUIRES:
// `out` has MaxFrameBytes.
size_t WriteFrame(uint8_t id, const SegmentCodec* codec, const CodecKey& key,
                  std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> out, CodecScratch& scratch);

// Completes the frame around an encoding of `encoding_bytes` at out[kFrameHeaderBytes]; 0: no
// encoding, as an element is not finite. Returns its length. REQUIRES: `out` has that length.
size_t FinishFrame(uint8_t id, size_t encoding_bytes, std::span<std::byte> out);

// A frame in a message. Its header is copied once, so it does not change with the message.
struct Frame {
  uint8_t codec = 0;                         // 0: FP32
  bool finite = true;                        // false: no encoding
  std::span<const std::byte> encoding = {};  // in the message
};

// Removes the frame at the front of `bytes`, which come from outside, and returns it. Nothing if it
// is malformed: longer than `bytes` or MostEncodingBytes, of an unknown codec, FP32 of another
// size. Decode checks the encoding itself.
std::optional<Frame> TakeFrame(size_t elements, std::span<const std::byte>& bytes);

// Decodes a frame's encoding. False as for SegmentCodec::Decode, and if the frame is not finite.
bool DecodeFrame(const Frame& frame, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_CODECS_FRAMES_H_
