// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_INT8_H_
#define TUG_COMPRESSION_DENSE_INT8_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// One byte per element: groups of 256 are mapped from minus to plus their largest magnitude onto
// the bytes -127 to 127 (quantisation by the absolute maximum; the byte -128 is not used). Groups,
// as for the quantised weights of ZeRO++ (Wang et al. 2023, section 3.1), confine the loss of
// precision by one large element to its neighbours.
//
//   scale = largest magnitude / 127          one FP32 number per group; the last may be short
//   byte  = element / scale, to the nearest, ties to even
//   decoded = byte * scale                   within half a scale of the element (and 2^-22 of it)
//
// A scale is at least the smallest normal number (also for zeros and denormals: zeros decode to
// +0), and at most the largest that gives finite numbers.
//
// Encoding, little-endian: the scales of all groups, then the bytes of all elements. 1.0156 bytes
// per element; the length depends on their number alone.
inline constexpr size_t kInt8Group = 256;

constexpr size_t Int8Bytes(size_t elements) {
  return elements + (elements + kInt8Group - 1) / kInt8Group * sizeof(float);
}

// For gradients: as in SegmentCodec, numbers that are not finite are neither encoded nor decoded.
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

// For weights, which may be any numbers. A group with one that is not finite has the scale NaN, and
// decodes to NaNs, so that computations show it as with FP32 weights. REQUIRES: `encoded` has
// Int8Bytes, does not overlap `weights`.
void EncodeInt8Weights(std::span<const float> weights, std::span<std::byte> encoded);
void DecodeInt8Weights(std::span<const std::byte> encoded, std::span<float> weights);

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_INT8_H_
