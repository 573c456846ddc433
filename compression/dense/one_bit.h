// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_ONE_BIT_H_
#define TUG_COMPRESSION_DENSE_ONE_BIT_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// The sign of each element, times the mean magnitude of its group of 512. Intended for error
// feedback. Paper: Seide et al. 2014, "1-bit stochastic gradient descent", with the scale of
// Karimireddy et al. 2019, "Error feedback fixes SignSGD", algorithm 1 (the mean magnitude: |x|_1 /
// n); the first paper uses one scale for each side of 0.
//
// Encoding, little-endian: per group its scale, FP32, and a word of 64 signs (bit 1: below 0) for
// each 64 elements or fewer. The bits beyond the last element are ignored. 3.32% of FP32.
class OneBitCodec : public SegmentCodec {
 public:
  static constexpr int kGroup = 512;

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

#endif  // TUG_COMPRESSION_DENSE_ONE_BIT_H_
