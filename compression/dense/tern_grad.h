// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_TERN_GRAD_H_
#define TUG_COMPRESSION_DENSE_TERN_GRAD_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Each element becomes -1, 0 or 1 times the largest magnitude of its group of 4096, at random
// without bias. Paper: Wen et al. 2017, "TernGrad", without its gradient clipping, which is biased;
// the paper's groups are layers.
//
// Encoding: the groups of levels-inl.h, one level above 0. 6.27% of FP32.
class TernGradCodec : public SegmentCodec {
 public:
  static constexpr int kGroup = 4096;

  size_t MaxEncodedBytes(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_TERN_GRAD_H_
