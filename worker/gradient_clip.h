#ifndef TUG_WORKER_GRADIENT_CLIP_H_
#define TUG_WORKER_GRADIENT_CLIP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// optimizer.clip where an update is of one virtual worker's gradient alone, so that it can be
// clipped where it is made (PushPlan::worker_clips). The factor is that of a lane
// (server/summed_closing.cc). Not thread-safe.
class GradientClip {
 public:
  // `config`: with all fields filled.
  GradientClip(const OptimizerConfig& config, uint32_t blocks) : config_(config), sums_(blocks) {}

  uint32_t blocks() const { return static_cast<uint32_t>(sums_.size()); }
  // No factor is known before all blocks have been added.
  bool global() const { return config_.clip() == OptimizerConfig::GLOBAL; }

  // A block's gradient, unscaled, is complete.
  void Add(uint32_t block, std::span<const float> gradient);
  // min(1, clip_norm / norm) of the gradient of the block, or with GLOBAL of all blocks, over
  // `tokens`; 1 with OFF. None: not finite. REQUIRES: added, since the last Factor of that block.
  std::optional<float> Factor(uint32_t block, uint64_t tokens) const;
  // Multiplies the block's gradient by its factor, or by NaN if there is none, so that lanes skip
  // all of its segments (job.proto, Clip). False then: rows of it do not stand for the rest. With
  // OFF nothing changes, and lanes skip what is not finite.
  bool Apply(uint32_t block, uint64_t tokens, std::span<float> gradient) const;

 private:
  const OptimizerConfig config_;
  std::vector<double> sums_;  // of squares, by block
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENT_CLIP_H_
