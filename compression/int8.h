#ifndef TUG_COMPRESSION_INT8_H_
#define TUG_COMPRESSION_INT8_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// A byte an element: groups of 256 are mapped from minus to plus their largest magnitude onto the
// bytes -127 to 127 (quantisation by the absolute maximum; the byte -128 is not used). In groups,
// as the quantised weights of ZeRO++ (Wang et al. 2023, section 3.1), so that one large element
// takes the precision of its neighbours only.
//
//   scale = largest magnitude / 127          one FP32 number a group, the last group may be short
//   byte  = element / scale, to the nearest, ties to even
//   decoded = byte * scale                   within half a scale of the element (and 2^-22 of it)
//
// A scale is no smaller than the smallest normal number (of zeros and denormals: zeros decode to
// +0), and no larger than gives finite numbers.
//
// Encoding, little-endian: the scales of all groups, then the bytes of all elements. 1.0156 bytes
// an element, a function of their number alone.
inline constexpr size_t kInt8Group = 256;

constexpr size_t Int8Bytes(size_t elements) {
  return elements + (elements + kInt8Group - 1) / kInt8Group * sizeof(float);
}

// Gradients: as SegmentCodec says, so what is not finite is not encoded, and not decoded.
class Int8Codec : public SegmentCodec {
 public:
  size_t MaxEncodedBytes(size_t elements) const override { return Int8Bytes(elements); }
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                            std::span<float> residual, std::span<std::byte> out,
                            CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;
};

// Weights: these are what they are. A group with one that is not finite has the scale NaN, and
// decodes to NaNs: so whoever computes with them sees what he would see of FP32 weights.
// REQUIRES: `encoded` has Int8Bytes, does not overlap `weights`.
void EncodeInt8Weights(std::span<const float> weights, std::span<std::byte> encoded);
void DecodeInt8Weights(std::span<const std::byte> encoded, std::span<float> weights);

}  // namespace tug

#endif  // TUG_COMPRESSION_INT8_H_
