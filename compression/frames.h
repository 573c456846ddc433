#ifndef TUG_COMPRESSION_FRAMES_H_
#define TUG_COMPRESSION_FRAMES_H_

// The payload of a push with Codec::kFrames (proto/wire.h): a frame for each of its segments, in
// order, little-endian:
//
//   uint32 bytes of the encoding | uint8 codec | uint8 1: not finite, else 0 | uint16 0 |
//   the encoding | zeros up to a multiple of 8 bytes
//
// The codec is that of compression/codecs.h; 0 is FP32, as it is. A segment with an element that is
// not finite has no encoding: its frame says so, and has 0 bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compression/codec.h"

namespace tug {

inline constexpr size_t kFrameHeaderBytes = 8;
// No codec needs more, also for a few elements; what is longer is malformed.
constexpr uint64_t MostEncodingBytes(uint64_t elements) { return 8 * elements + 128; }

// Bytes of a frame around an encoding of so many.
constexpr size_t FrameBytes(size_t encoding_bytes) {
  return kFrameHeaderBytes + (encoding_bytes + 7) / 8 * 8;
}
// No frame of so many elements by this codec (null: FP32) is longer.
size_t MaxFrameBytes(const SegmentCodec* codec, size_t elements);

// Writes a segment's frame to the front of `out`, and returns its length. `id`, `codec`: what
// encodes it; 0 and null: FP32. `residual`: empty, or what error feedback keeps of the segment
// (SegmentCodec::EncodeWithResidual), which is used up and made anew; FP32 leaves nothing of it but
// zeros. REQUIRES: `out` has MaxFrameBytes.
size_t WriteFrame(uint8_t id, const SegmentCodec* codec, const CodecKey& key,
                  std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> out, CodecScratch& scratch);

// The frame around an encoding of so many bytes that lies at out[kFrameHeaderBytes]; 0: there is
// none, an element is not finite. Returns its length. REQUIRES: `out` has that.
size_t FinishFrame(uint8_t id, size_t encoding_bytes, std::span<std::byte> out);

// A frame in a message. Copied out of it once, so it does not change with the message.
struct Frame {
  uint8_t codec = 0;                         // 0: FP32
  bool finite = true;                        // false: no encoding
  std::span<const std::byte> encoding = {};  // in the message
};

// The frame at the front of what comes from outside, and takes it off there. Nothing if it is
// malformed: longer than `bytes` or MostEncodingBytes, of an unknown codec, FP32 of another size.
// What is in the encoding is for Decode to see.
std::optional<Frame> TakeFrame(size_t elements, std::span<const std::byte>& bytes);

// Decodes a frame's encoding; false as SegmentCodec::Decode, and if it is not finite.
bool DecodeFrame(const Frame& frame, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_FRAMES_H_
