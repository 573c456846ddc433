// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_BF16_H_
#define TUG_COMPRESSION_DENSE_BF16_H_

#include "compression/codec.h"

namespace tug {

// The upper half of each FP32 number, rounded to nearest even: 2 bytes per element, little-endian.
// Accurate to 2^-8 of each element; one beyond the largest bf16 becomes that.
class Bf16Codec : public SegmentCodec {
 public:
  size_t MaxEncodedBytes(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                            std::span<float> residual, std::span<std::byte> out,
                            CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_BF16_H_
