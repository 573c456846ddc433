#ifndef TUG_SERVER_SHADOW_H_
#define TUG_SERVER_SHADOW_H_

// What workers hold of the weights with comm.pull_format CHANGES: their shadow, FP32. All workers,
// and everybody who keeps a copy of a segment, have the same bits of it at a version. With w(v) the
// weights that the optimizer has made:
//
//   d          = w(v) - shadow(v - 1)
//   e          = the elements of d of the largest magnitude (exchange/weight_changes.h)
//   shadow(v)  = shadow(v - 1) + e
//
// So pulls of v bring e to who holds v - 1, and what e leaves out stays in w - shadow, from where a
// later version brings it: error feedback (Karimireddy et al. 2019, algorithm 2) as DoubleSqueeze
// has it on the server's side (Tang et al. 2019).
//
// At the start, at every multiple of `whole_every`, and where d is not finite, the shadow is the
// weights, all of which workers pull. Checkpoints are of such versions: who begins with one has the
// shadow, and evaluations at that version are of the checkpoint's weights.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "compression/top_k.h"
#include "exchange/segment_table.h"

namespace tug {

// Makes shadows of one lane's segments. Allocates nothing once it has made the largest one's. Not
// thread-safe.
class ShadowMaker {
 public:
  struct Options {
    double density = 0.1;      // comm.pull_density
    uint64_t seed = 0;         // of the job
    uint64_t whole_every = 0;  // versions; 0: none but the start is whole
  };
  explicit ShadowMaker(const Options& options);

  // Of the frame of a segment's changes, at most.
  size_t MaxChangesBytes(uint64_t elements) const;
  // Makes `after`, the shadow of `version`, out of `before`, that of version - 1, and writes the
  // frame of what differs into `changes`, where a whole one leaves none. `weights`: of `version`.
  // REQUIRES: the segment's elements each; `changes` has MaxChangesBytes of them.
  void Make(const Segment& segment, uint64_t version, std::span<const float> weights,
            std::span<const float> before, std::span<float> after, std::span<std::byte> changes);

 private:
  const Options options_;
  const TopKCodec codec_;
  CodecScratch scratch_;
  std::vector<float> difference_;
};

// The frame that Make has written into `changes`. Empty: there is none, as in bytes that are 0.
std::span<const std::byte> ChangesIn(std::span<const std::byte> changes, uint64_t elements);

}  // namespace tug

#endif  // TUG_SERVER_SHADOW_H_
