#ifndef TUG_WORKER_GRADIENT_CHANGE_H_
#define TUG_WORKER_GRADIENT_CHANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "exchange/segment_table.h"
#include "worker/gradient_clip.h"
#include "worker/local_steps.h"
#include "worker/step_machine.h"

namespace tug {

// What becomes of a virtual worker's complete gradient before it is pushed, where the worker
// changes it (PushPlan::worker_clips): it is clipped, or a local step is taken with it, the last of
// which leaves the difference in its place. With a norm over all blocks that is when the last one
// is complete. Not thread-safe: owned by the compute thread.
class GradientChange {
 public:
  // `config`: all fields filled. REQUIRES: `table` outlives it.
  GradientChange(const JobConfig& config, const SegmentTable& table, uint32_t virtual_workers);

  struct Block {
    std::span<float> gradient;
    std::span<const float> weights;  // that were pulled
  };
  // The gradient of the computation's block is complete, a sum over `tokens`. `at`: of the virtual
  // worker.
  void OnGradient(const Compute& compute, uint64_t tokens,
                  const std::function<Block(uint32_t block)>& at);
  bool takes_local_steps() const { return local_steps_.has_value(); }
  // What a local step computes with; empty: what was pulled.
  // REQUIRES: takes_local_steps.
  std::span<const float> LocalWeights(const Compute& compute) const;
  // The other rows of block 0 have no gradient: not even NaN.
  bool rows_suffice() const { return rows_suffice_; }
  // As LocalSteps::Carry.
  void Carry(const std::vector<std::optional<uint32_t>>& before);

 private:
  void Settle(const Compute& compute, uint64_t tokens, uint32_t block, const Block& at);

  const uint32_t local_;  // steps
  GradientClip clip_;
  std::optional<LocalSteps> local_steps_;
  bool rows_suffice_ = true;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENT_CHANGE_H_
