// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_LOCAL_STEPS_H_
#define TUG_WORKER_CORE_LOCAL_STEPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/lease.h"
#include "blocks/segment_table.h"
#include "optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace tug {

// Local weights (FP32) and optimizer state of virtual workers that take `sync.local_steps` (H)
// local steps per step of the job.
//   1. Local step 0 of clock c begins from the weights w of version c, which all have pulled.
//   2. Local step h updates the virtual worker's weights with `optimizer` and its own gradient, at
//      position c + h / H of the learning-rate schedule.
//   3. After the last one, w - (its weights) is pushed like a gradient; lanes apply the mean over
//      virtual workers with `sync.outer`.
// The optimizer state of 2. persists across clocks. It lives only here: a virtual worker that moves
// to another process, or is resumed, starts without it.
// Paper: Douillard et al. 2023, "DiLoCo", algorithm 1; Stich 2019, "Local SGD converges fast".
//
// Memory: weights, m and v (those that the optimizer keeps) per virtual worker, 4 bytes per element
// each; pages are touched on first write. Owned by the compute thread.
class LocalSteps {
 public:
  // `config`: all fields filled. REQUIRES: `table` outlives it.
  LocalSteps(const JobConfig& config, const SegmentTable& table, uint32_t virtual_workers);

  // A block's weights after the last update. REQUIRES: Update of this clock.
  std::span<const float> Weights(uint32_t virtual_worker, uint32_t block) const;

  // Replaces the virtual workers. `before`: by index, the previous index; none if it is new.
  void Carry(const std::vector<std::optional<uint32_t>>& before);

  // Applies one update. `gradient`: the unscaled sum, which is multiplied by `gradient_scale`; if
  // that is empty, the gradient is not finite and the weights stay unchanged. `start`: the weights
  // pulled for `clock`, from which local step 0 begins.
  struct Step {
    uint64_t clock = 0;
    uint32_t local_step = 0;
    std::optional<float> gradient_scale;
  };
  void Update(uint32_t virtual_worker, uint32_t block, const Step& step,
              std::span<const float> gradient, std::span<const float> start);

  // out = start - the virtual worker's weights.
  void Difference(uint32_t virtual_worker, uint32_t block, std::span<const float> start,
                  std::span<float> out) const;

 private:
  struct BlockState {
    AlignedBuffer weights, m, v;
    uint64_t updates = 0;  // including skipped ones
  };

  // State of a virtual worker that has not taken a step here.
  std::vector<BlockState> NewState() const;

  const SegmentTable& table_;
  const uint32_t local_steps_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::vector<std::vector<BlockState>> states_;  // by virtual worker and block
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_LOCAL_STEPS_H_
