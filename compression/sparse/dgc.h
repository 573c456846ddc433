// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_DGC_H_
#define TUG_COMPRESSION_SPARSE_DGC_H_

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// Deep Gradient Compression (Lin et al. 2018, "Deep gradient compression: reducing the
// communication bandwidth for distributed training", algorithm 4): workers apply momentum before
// they select the largest elements, so that an element sent late has the momentum that it would
// have had. Per element the codec keeps its velocity u (the state after the residual) and the sum v
// of the velocities that were not sent (the residual):
//
//   1. u = m u + g;  v = v + u             momentum correction
//   2. the elements of v with the largest magnitude are sent, unencoded
//   3. where they were sent, u = 0, v = 0  momentum factor masking
//
// Servers then apply plain SGD: momentum of their own would count twice. An element that is sent in
// every step has no momentum at all, as in the paper.
//
// Selection is select_top.h's SelectAbout, so from half of the density to MostAbout of it is sent,
// written by sparse_values.h. (The paper samples 0.1 to 1%; here the sample is 4,096 elements, by
// place; segments of less than 16,384, and a density of 0.5, are selected exactly.) The density
// falls exponentially from a quarter, over density_warmup_steps of clocks after
// comm.push_codec.warmup_steps: before those, pushes are FP32, and without momentum.
// MaxEncodedBytes is that of the first density: about a third of FP32, unless there are no such
// steps. At a density of 1% it is 1.3% of FP32.
//
// A dropped push gets its v back, not its u: the velocity of the elements sent restarts at 0.
// Without residual, Encode sends the largest elements of the gradient itself. Unlike in the
// paper, workers do not clip their gradients: optimizer.clip applies to the servers' sums.
class DgcSegmentCodec : public SegmentCodec {
 public:
  explicit DgcSegmentCodec(const PushCodecConfig& config);

  size_t MaxEncodedBytes(size_t elements) const override;
  size_t StateFloats(size_t elements) const override { return elements; }
  size_t Encode(const CodecKey& key, std::span<const float> elements, std::span<std::byte> out,
                CodecScratch& scratch) const override;
  size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                            std::span<float> residual, std::span<std::byte> out,
                            CodecScratch& scratch) const override;
  bool Decode(std::span<const std::byte> encoded, DecodeTo to,
              std::span<float> elements) const override;

  // Same bits on every machine.
  double DensityAt(uint64_t clock) const;

 private:
  const double density_;
  const float momentum_;
  const uint64_t first_clock_;  // of the decay
  const uint64_t fall_steps_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_DGC_H_
