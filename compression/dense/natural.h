// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_NATURAL_H_
#define TUG_COMPRESSION_DENSE_NATURAL_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Rounds each element at random to one of the two powers of two around it, without bias. Paper:
// Horvath et al. 2022, "Natural compression for distributed deep learning".
//
// Seven bits hold the exponent, relative to the power that the segment's largest magnitude may be
// rounded up to: an element below 2^-126 of that becomes 0. One above 2^127, which has no power of
// two above it, becomes 2^127. Only these two cases are biased.
//
// Encoding: one byte, the FP32 exponent of the largest power (1..254); then one byte per element,
// the sign (bit 7: below 0) and 127 for the largest power, 126 for half of it, ..., 0 for 0. 25.0%
// of FP32.
class NaturalCodec : public SegmentCodec {
 public:
  size_t MaxEncodedBytes(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_NATURAL_H_
