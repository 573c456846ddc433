// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_GRADIENT_CHANGE_H_
#define TUG_WORKER_GRADIENTS_GRADIENT_CHANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "blocks/segment_table.h"
#include "worker/core/local_steps.h"
#include "worker/core/step_machine.h"
#include "worker/gradients/gradient_clip.h"

namespace tug {

// Changes a virtual worker's complete gradient before its push (PushPlan::worker_clips): clips it,
// or takes a local step with it; the last local step replaces it by the difference. With a norm
// over all blocks, changes all blocks once the last one is complete. Not thread-safe: owned by the
// compute thread.
class GradientChange {
 public:
  // `config`: all fields filled. REQUIRES: `table` outlives it.
  GradientChange(const JobConfig& config, const SegmentTable& table, uint32_t virtual_workers);

  struct Block {
    std::span<float> gradient;
    std::span<const float> weights;  // as pulled
  };
  // The gradient of the computation's block is complete, a sum over `tokens`. `at`: returns the
  // virtual worker's blocks.
  void OnGradient(const Compute& compute, uint64_t tokens,
                  const std::function<Block(uint32_t block)>& at);
  bool takes_local_steps() const { return local_steps_.has_value(); }
  // Weights that a local step computes with; empty: the pulled ones.
  // REQUIRES: takes_local_steps.
  std::span<const float> LocalWeights(const Compute& compute) const;
  // Whether the touched rows of block 0 suffice: the others have no gradient, not even NaN.
  bool rows_suffice() const { return rows_suffice_; }
  // See LocalSteps::Carry.
  void Carry(const std::vector<std::optional<uint32_t>>& before);

 private:
  void Settle(const Compute& compute, uint64_t tokens, uint32_t block, const Block& at);

  const uint32_t local_;  // local steps per step
  GradientClip clip_;
  std::optional<LocalSteps> local_steps_;
  bool rows_suffice_ = true;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_GRADIENT_CHANGE_H_
