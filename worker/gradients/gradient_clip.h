// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_GRADIENT_CLIP_H_
#define TUG_WORKER_GRADIENTS_GRADIENT_CLIP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// optimizer.clip where an update uses one virtual worker's gradient alone, so that its worker can
// clip it (PushPlan::worker_clips). Same factor as on a lane (server/shard/summed_closing.cc). Not
// thread-safe.
class GradientClip {
 public:
  // `config`: all fields filled.
  GradientClip(const OptimizerConfig& config, uint32_t blocks) : config_(config), sums_(blocks) {}

  uint32_t blocks() const { return static_cast<uint32_t>(sums_.size()); }
  // Whether no factor is known before all blocks have been added.
  bool global() const { return config_.clip() == OptimizerConfig::GLOBAL; }

  // Adds a block's complete gradient, unscaled.
  void Add(uint32_t block, std::span<const float> gradient);
  // min(1, clip_norm / norm) of the block's gradient, or with GLOBAL of all blocks, over `tokens`;
  // 1 with OFF. None: not finite. REQUIRES: added since the last Factor of that block.
  std::optional<float> Factor(uint32_t block, uint64_t tokens) const;
  // Multiplies the block's gradient by its factor; if there is none, fills it with NaN, so that
  // lanes skip all its segments (job.proto, Clip), and returns false: its rows do not represent the
  // rest. OFF changes nothing; lanes skip segments that are not finite.
  bool Apply(uint32_t block, uint64_t tokens, std::span<float> gradient) const;

 private:
  const OptimizerConfig config_;
  std::vector<double> sums_;  // of squares, by block
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_GRADIENT_CLIP_H_
