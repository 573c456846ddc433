// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_LOW_RANK_POWER_SGD_H_
#define TUG_COMPRESSION_LOW_RANK_POWER_SGD_H_

#include "compression/codec.h"
#include "compression/low_rank/low_rank.h"
#include "proto/job.pb.h"

namespace tug {

// Two thin factors of the segment as a matrix M, by one step of subspace iteration (Vogels et al.
// 2019, "PowerSGD: practical low-rank gradient compression for distributed optimization", algorithm
// 1). M has `columns` columns and as many rows as needed, the last one padded with zeros:
//
//   1. P = M Q, with the Q of the previous clock
//   2. P's columns are made orthonormal
//   3. Q = M^T P; P and Q are sent, and decode to P Q^T
//
// State kept between clocks, after the residual: Q, with columns of length 1 (the warm start of
// section 4.2). A missing column, at first or because M had no such direction, is drawn by the key,
// each element uniformly from -1 to 1. Without residual all are drawn.
//
// The paper's workers sum P, then Q = M^T P of one P, so that they get the best approximation of
// the mean gradient, of rank r, in two rounds of an all-reduce. Here a worker pushes both at once,
// for its own gradient, and servers add the products: a push has the same bytes, there is one
// round, and the mean of W workers has a rank of up to W r.
//
// Little-endian:
//
//   uint32 rank | uint32 columns | P, FP32, column by column | Q, FP32, column by column
//
// P and Q are sent times powers of two that give them similar magnitudes. The rank is lower than
// configured if the factors would not be smaller than the segment; if no rank is low enough (one
// row), it is 0, and the elements follow unencoded. With rank 4 and 512 columns 1.6% of FP32.
// Numbers so large that P Q^T, or the encoding error, overflows have no encoding.
class PowerSgdSegmentCodec : public SegmentCodec {
 public:
  explicit PowerSgdSegmentCodec(const PushCodecConfig& config);

  size_t MaxEncodedBytes(size_t elements) const override;
  size_t StateFloats(size_t elements) const override;
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                            std::span<float> residual, std::span<std::byte> out,
                            CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;

 private:
  // Encodes `elements`, given the bits of their largest magnitude. `warm`: Q, replaced by that of
  // the next clock; or empty.
  size_t EncodeMatrix(const CodecKey& key, std::span<const float> elements, int32_t largest_bits,
                      std::span<float> warm, std::span<std::byte> out, CodecScratch& scratch) const;

  const int64_t rank_;
  const int64_t columns_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_LOW_RANK_POWER_SGD_H_
