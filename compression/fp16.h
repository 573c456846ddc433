#ifndef TUG_COMPRESSION_FP16_H_
#define TUG_COMPRESSION_FP16_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Half precision (IEEE 754 binary16), rounded to nearest even, of the segment scaled by a power of
// two: the largest magnitude comes to [2^14, 2^15), so that nothing overflows, and what is 2^-28 of
// it and more keeps all 11 bits. One beyond the largest number of 11 bits becomes that.
// The scale is that of mixed-precision training (Micikevicius et al. 2018, "loss scaling"), taken
// of each segment.
//
// Encoding: the power of two that decoding multiplies by, FP32, then 2 bytes an element;
// little-endian. 50.0% of FP32.
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

#endif  // TUG_COMPRESSION_FP16_H_
