// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_TOP_K_H_
#define TUG_COMPRESSION_SPARSE_TOP_K_H_

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// Sends the elements of the largest magnitude unencoded (Aji and Heafield 2017, "Sparse
// communication for distributed gradient descent"): exactly the `density` of the segment, selected
// by select_top.h and written by sparse_values.h. At a density of 1% it is 1.27% of FP32.
class TopKCodec : public SegmentCodec {
 public:
  explicit TopKCodec(const PushCodecConfig& config) : density_(config.top_k().density()) {}

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

#endif  // TUG_COMPRESSION_SPARSE_TOP_K_H_
