#ifndef TUG_WORKER_LOCAL_STEPS_H_
#define TUG_WORKER_LOCAL_STEPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "exchange/segment_table.h"
#include "optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace tug {

// What virtual workers keep between exchanges where each takes `sync.local_steps` (H) steps of its
// own in a step of the job: FP32 weights, and the optimizer's state.
//   1. Local step 0 of clock c begins from the weights w of version c, which all have pulled.
//   2. Local step h updates the virtual worker's weights by `optimizer`, with its own gradient, at
//      position c + h / H of the rate's schedule.
//   3. After the last one, w - (its weights) is pushed as if it were a gradient: lanes apply the
//      mean over virtual workers by `sync.outer`.
// The state of step 2 goes on from one clock to the next; it lives here only, so a virtual worker
// that another process takes over, or that is resumed, begins with none.
// Paper: Douillard et al. 2023, "DiLoCo", algorithm 1; Stich 2019, "Local SGD converges fast".
//
// Memory: the weights, m and v (those that the optimizer keeps) for each virtual worker, 4 bytes an
// element each; touched when they are first written. Owned by the compute thread.
class LocalSteps {
 public:
  // `config`: with all fields filled. REQUIRES: `table` outlives it.
  LocalSteps(const JobConfig& config, const SegmentTable& table, uint32_t virtual_workers);

  // A block's weights after the last update. REQUIRES: Update of this clock.
  std::span<const float> Weights(uint32_t virtual_worker, uint32_t block) const;

  // Virtual workers become others: of each the index it had, or none if it is new.
  void Carry(const std::vector<std::optional<uint32_t>>& before);

  // One update. `gradient`: the unscaled sum, multiplied by `gradient_scale` first; none: it is not
  // finite, and the weights stay as they are. `start`: the weights pulled for `clock`, from which
  // local step 0 begins.
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
    uint64_t updates = 0;  // skipped ones too
  };

  // Of a virtual worker that has not taken a step here.
  std::vector<BlockState> NewState() const;

  const SegmentTable& table_;
  const uint32_t local_steps_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::vector<std::vector<BlockState>> states_;  // by carried virtual worker and block
};

}  // namespace tug

#endif  // TUG_WORKER_LOCAL_STEPS_H_
