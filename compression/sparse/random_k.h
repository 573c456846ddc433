// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_RANDOM_K_H_
#define TUG_COMPRESSION_SPARSE_RANDOM_K_H_

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// k elements drawn at random, where k is the `density` of the segment (Stich et al. 2018,
// "Sparsified SGD with memory"). No indices are sent; both sides draw them: the segment is divided
// into k strata of n/k consecutive elements, rounded down or up, and one element of each is drawn
// uniformly. So indices are distinct and ascend, and drawing takes neither memory nor a search.
// Little-endian:
//
//   uint64 seed of the draw, a function of CodecKey | the k values, FP32
//
// At a density of 1% it is 1.00% of FP32. With error feedback values are sent unscaled; without,
// times the number of elements in their stratum, so that the gradient is unbiased. A value that
// overflows by that has no encoding.
class RandomKCodec : public SegmentCodec {
 public:
  explicit RandomKCodec(const PushCodecConfig& config)
      : density_(config.random_k().density()), scaled_(!config.error_feedback()) {}

  size_t MaxEncodedBytes(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                            std::span<float> residual, std::span<std::byte> out,
                            CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;

 private:
  const double density_;
  const bool scaled_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_RANDOM_K_H_
