// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_SHADOW_H_
#define TUG_SERVER_SEGMENTS_SHADOW_H_

// Shadow: the weights that workers hold with comm.pull_format CHANGES, FP32. All workers, and all
// lanes with a replica of a segment, have the same bits of it at a version. With w(v) the weights
// that the optimizer has made:
//
//   d          = w(v) - shadow(v - 1)
//   e          = the elements of d of the largest magnitude (blocks/weight_changes.h)
//   shadow(v)  = shadow(v - 1) + e
//
// So a pull of v brings e to a worker that holds v - 1; the rest stays in w - shadow until a later
// version brings it: error feedback (Karimireddy et al. 2019, algorithm 2), on the server's side as
// in DoubleSqueeze (Tang et al. 2019).
//
// At the start, at every multiple of `whole_every`, and if d is not finite, the shadow is the
// weights, and workers pull all of them. Checkpoints are taken at such versions: a job that resumes
// from one has the shadow, and evaluations at that version use the checkpoint's weights.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "blocks/segment_table.h"
#include "compression/codec.h"
#include "compression/sparse/top_k.h"

namespace tug {

// Makes shadows of one lane's segments. Allocates nothing once it has made the largest. Not
// thread-safe.
class ShadowMaker {
 public:
  struct Options {
    double density = 0.1;      // comm.pull_density
    uint64_t seed = 0;         // JobConfig.seed
    uint64_t whole_every = 0;  // versions; 0: only at the start
  };
  explicit ShadowMaker(const Options& options);

  // Maximum size of the frame of a segment's changes.
  size_t MaxChangesBytes(uint64_t elements) const;
  // Makes `after`, the shadow of `version`, from `before`, that of version - 1, and writes the
  // frame of the difference to `changes`; a whole shadow has no frame. `weights`: of `version`.
  // REQUIRES: the spans have the segment's elements; `changes` has MaxChangesBytes.
  void Make(const Segment& segment, uint64_t version, std::span<const float> weights,
            std::span<const float> before, std::span<float> after, std::span<std::byte> changes);

 private:
  const Options options_;
  const TopKCodec codec_;
  CodecScratch scratch_;
  std::vector<float> difference_;
};

// The frame that Make has written to `changes`. Empty: none, as in zero bytes.
std::span<const std::byte> ChangesIn(std::span<const std::byte> changes, uint64_t elements);

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_SHADOW_H_
