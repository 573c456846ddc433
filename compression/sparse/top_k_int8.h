// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_TOP_K_INT8_H_
#define TUG_COMPRESSION_SPARSE_TOP_K_INT8_H_

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// The elements of top_k.h, each as a whole number of -127 to 127 times the scale of its group:
// 1/127 of the largest magnitude of 256 successive elements that are sent. Little-endian:
//
//   uint32 count | their indices (sorted_indices.h) | FP32 scale of each group | int8 of each
//
// At a density of 1% it is 0.52% of FP32. An element is off by at most half of its group's scale.
class TopKInt8Codec : public SegmentCodec {
 public:
  explicit TopKInt8Codec(const PushCodecConfig& config) : density_(config.top_k_int8().density()) {}

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
};

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_TOP_K_INT8_H_
