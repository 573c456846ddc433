#ifndef TUG_COMPRESSION_DGC_H_
#define TUG_COMPRESSION_DGC_H_

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// Deep Gradient Compression (Lin et al. 2018, "Deep gradient compression: reducing the
// communication bandwidth for distributed training", algorithm 4): the worker's part of momentum
// SGD is done before the largest are chosen, so that what is late has the momentum that it would
// have had. Of each element it keeps its velocity u (the state behind the residual) and the sum v
// of the velocities that were not sent (the residual):
//
//   1. u = m u + g;  v = v + u             momentum correction
//   2. of v those of the largest magnitude are sent, as they are
//   3. where they were sent, u = 0, v = 0  momentum factor masking
//
// Servers then apply plain SGD: with momentum of their own it would count twice. An element that is
// sent at once, step after step, has no momentum at all, as in the paper.
//
// What is largest: select_top.h's SelectAbout, so from half of the density to MostAbout of it is
// sent, written by sparse_values.h. (The paper samples 0.1 to 1%; here it is 4,096 elements, by
// place; segments of less than 16,384, and a density of 0.5, are selected exactly.) The density
// falls exponentially from a quarter, over density_warmup_steps of clocks after
// comm.push_codec.warmup_steps: before those, pushes are FP32, and without momentum.
// MaxEncodedBytes is that of its beginning: about a third of FP32, unless there are no such steps.
// At a density of 1% it is 1.3% of FP32.
//
// A push that is dropped gets its v back, not its u: the velocity of what was sent begins anew.
// Without residual Encode sends the largest elements of the gradient itself.
// Of the paper it lacks the clipping of each worker's gradient by its part of the norm.
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

  // Has the same bits on every machine.
  double DensityAt(uint64_t clock) const;

 private:
  const double density_;
  const float momentum_;
  const uint64_t first_clock_;  // of the fall
  const uint64_t fall_steps_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DGC_H_
