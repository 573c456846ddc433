// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_INT4_H_
#define TUG_COMPRESSION_DENSE_INT4_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Each element as a whole number of -7..7, rounded to nearest, times a seventh of the largest
// magnitude of its group of 64. Groups as small as in Dettmers et al. 2022, "8-bit optimizers via
// block-wise quantization": a large element affects few others.
//
// Encoding: the groups of levels-inl.h, 7 levels above 0. 14.06% of FP32.
class Int4Codec : public SegmentCodec {
 public:
  static constexpr int kGroup = 64;

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

#endif  // TUG_COMPRESSION_DENSE_INT4_H_
