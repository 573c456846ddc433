// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_QSGD_H_
#define TUG_COMPRESSION_DENSE_QSGD_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// Rounds each element of a group of 512 at random to one of the two levels around it, without bias:
// the levels are equal parts of the group's largest magnitude. Paper: Alistarh et al. 2017, "QSGD",
// section 3.1, scaled by the largest magnitude instead of the Euclidean norm, as in the paper's
// experiments: fewer elements become 0.
//
// Encoding: the number of levels above 0, one byte; then the groups of levels-inl.h. 12.70% of FP32
// with 7 levels.
class QsgdSegmentCodec : public SegmentCodec {
 public:
  static constexpr int kGroup = 512;

  // REQUIRES: levels one less than a power of two, 1..127; or unset, to decode only.
  explicit QsgdSegmentCodec(const PushCodecConfig& config);

  size_t MaxEncodedBytes(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;

 private:
  int bits_;  // per level
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_QSGD_H_
