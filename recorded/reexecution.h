#ifndef TUG_RECORDED_REEXECUTION_H_
#define TUG_RECORDED_REEXECUTION_H_

// Computes a recorded run again, one gradient after the other.
//
//   1. A step whose weights have all been made, each segment at its recorded version, is computed.
//   2. Its gradient becomes updates: on every segment, in the recorded order, as long as the next
//      one's gradient is there.
//   3. What these versions make possible is next; until all updates are made.
//
// Any such order gives the same bits, since a gradient depends on its weights only, and an update
// on the one before it. Of older versions those are kept that a step not yet computed needs, and of
// gradients those not yet applied everywhere: a virtual worker's next step needs its last one, so
// there are at most as many gradients as virtual workers. With sync.delay_compensation the weights
// of a gradient are kept until it is applied.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "exchange/segment_table.h"
#include "optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "recorded/recorded_run.h"
#include "recorded/weight_versions.h"

namespace tug {

// A step's gradient: by block, as it was pushed, and over how many targets it is a sum.
struct PushedGradient {
  std::vector<std::vector<float>> blocks;
  uint64_t token_count = 1;
};

// Of a step's virtual worker and clock, on weights by block.
using ComputeGradient = std::function<PushedGradient(
    uint32_t virtual_worker, uint64_t clock, std::span<const std::span<const float>> weights)>;

// Not thread-safe.
class Reexecution {
 public:
  // `start`: weights by segment, before the first update. REQUIRES: `run` and `table` outlive this,
  // and are of one job, whose configuration has all fields filled.
  Reexecution(const JobConfig& config, const SegmentTable& table, const RecordedRun& run,
              std::vector<std::vector<float>> start, ComputeGradient compute);

  // To the end. `progress`: told after every gradient how many updates are made. Errors:
  // DATA_LOSS: the recorded order cannot have been (a gradient of weights that come of it), or an
  // update was skipped there and would not be here, or the other way round.
  absl::Status Run(const std::function<void(size_t updates)>& progress);

  // After Run.
  std::span<const float> weights(uint32_t segment) { return segments_[segment].versions.newest(); }
  // Empty where the optimizer keeps none.
  std::span<const float> m(uint32_t segment) const { return segments_[segment].m; }
  std::span<const float> v(uint32_t segment) const { return segments_[segment].v; }

 private:
  struct SegmentState {
    WeightVersions versions;
    std::vector<float> m, v;
    size_t applied = 0;                               // updates
    std::map<uint64_t, std::vector<size_t>> waiting;  // steps, by the version that they wait for
  };
  struct StepState {
    uint32_t missing = 0;  // segments that are not at its version yet
    uint32_t unapplied = 0;
    std::unique_ptr<PushedGradient> gradient;  // while there is one
  };

  void Compute(size_t step);
  absl::Status ApplyAll();
  absl::Status Apply(uint32_t segment, const RecordedUpdate& update);
  void Optimize(uint32_t segment, const UpdateStep& step, std::span<const float> gradient);

  const JobConfig& config_;
  const SegmentTable& table_;
  const RecordedRun& run_;
  const ComputeGradient compute_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::vector<SegmentState> segments_;
  std::vector<StepState> steps_;             // as in run_
  std::vector<size_t> ready_;                // steps that can be computed
  std::vector<std::vector<float>> weights_;  // by block, of the step being computed
  std::vector<float> compensated_;
  size_t updates_ = 0;
};

}  // namespace tug

#endif  // TUG_RECORDED_REEXECUTION_H_
