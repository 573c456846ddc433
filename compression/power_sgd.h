#ifndef TUG_COMPRESSION_POWER_SGD_H_
#define TUG_COMPRESSION_POWER_SGD_H_

#include "compression/codec.h"
#include "compression/low_rank.h"
#include "proto/job.pb.h"

namespace tug {

// Two thin factors of the segment as a matrix M, by one step of subspace iteration (Vogels et al.
// 2019, "PowerSGD: practical low-rank gradient compression for distributed optimization", algorithm
// 1). M has `columns` columns and as many rows as it takes, the last one filled with zeros:
//
//   1. P = M Q, of the Q of the clock before
//   2. P's columns are made orthonormal
//   3. Q = M^T P; P and Q are sent, and decode to P Q^T
//
// Kept from one clock to the next, behind the residual: Q, its columns at length 1 (the warm start
// of section 4.2). A column that is not there, at first or because M had no such direction, is
// drawn by the key, each element from -1 to 1 alike. Without residual all are drawn.
//
// The paper's workers sum P, then Q = M^T P of one P, so that they get the best of the mean
// gradient, of rank r, in two rounds of an all-reduce. Here a worker pushes both at once, of its
// own gradient, and servers add the products: the bytes of a push are the same, there is one round,
// and the mean of W workers has a rank of up to W r.
//
// Little-endian:
//
//   uint32 rank | uint32 columns | P, FP32, column by column | Q, FP32, column by column
//
// P and Q are sent times powers of two that make them numbers of like size. The rank is lower than
// the job has it where the factors would else not be smaller than the segment; where no rank is low
// enough (one row), it is 0, and the elements follow as they are. With rank 4 and 512 columns 1.6%
// of FP32. Numbers so large that P Q^T, or what it leaves, overflow have no encoding.
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
  // `elements`, the bits of whose largest magnitude are given. `warm`: Q, left as that of the next
  // clock, or empty.
  size_t EncodeMatrix(const CodecKey& key, std::span<const float> elements, int32_t largest_bits,
                      std::span<float> warm, std::span<std::byte> out, CodecScratch& scratch) const;

  const int64_t rank_;
  const int64_t columns_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_POWER_SGD_H_
