// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_FP16_H_
#define TUG_COMPRESSION_DENSE_FP16_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Half precision (IEEE 754 binary16), rounded to nearest even, of the segment scaled by a power of
// two: the largest magnitude falls into [2^14, 2^15), so that nothing overflows, and elements of at
// least 2^-28 of it keep all 11 bits. An element beyond the largest number of 11 bits becomes that.
// The scale is that of mixed-precision training (Micikevicius et al. 2018, "loss scaling"), per
// segment.
//
// Encoding, little-endian: the power of two that decoding multiplies by, FP32, then 2 bytes per
// element. 50.0% of FP32.
class Fp16Codec : public SegmentCodec {
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

#endif  // TUG_COMPRESSION_DENSE_FP16_H_
