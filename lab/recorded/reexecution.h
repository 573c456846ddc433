// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_RECORDED_REEXECUTION_H_
#define TUG_LAB_RECORDED_REEXECUTION_H_

// Computes a recorded run again, one gradient at a time.
//
//   1. Compute a step once all segments have reached the versions that it was computed with.
//   2. Apply its gradient: update every segment in the recorded order, as far as the gradients of
//      the next updates exist.
//   3. Continue with the steps that these versions allow, until all updates are made.
//
// Any such order gives the same bits: a gradient depends only on its weights, and an update on the
// previous one. Older versions are kept while a step that is not computed yet needs them, gradients
// until they are applied everywhere. A virtual worker's next step needs its last one, so there are
// at most as many gradients as virtual workers. With sync.delay_compensation, the weights of a
// gradient are kept until it is applied.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "blocks/segment_table.h"
#include "lab/recorded/recorded_run.h"
#include "lab/recorded/weight_versions.h"
#include "optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace tug {

// A step's gradient by block, as pushed; `token_count` is the number of targets summed.
struct PushedGradient {
  std::vector<std::vector<float>> blocks;
  uint64_t token_count = 1;
};

// Computes the gradient of a step, given its virtual worker, its clock and the weights by block.
using ComputeGradient = std::function<PushedGradient(
    uint32_t virtual_worker, uint64_t clock, std::span<const std::span<const float>> weights)>;

// Not thread-safe.
class Reexecution {
 public:
  // `start`: weights by segment before the first update. REQUIRES: `config`, `table` and `run`
  // outlive this object and belong to the same job; `config` has defaults filled in.
  Reexecution(const JobConfig& config, const SegmentTable& table, const RecordedRun& run,
              std::vector<std::vector<float>> start, ComputeGradient compute);

  // Runs to the end. Calls `progress` after every gradient with the number of updates made. Errors:
  // DATA_LOSS: the recorded order is impossible (a gradient depends on weights that depend on it),
  // or a gradient is not finite in only one of the recorded run and this one.
  absl::Status Run(const std::function<void(size_t updates)>& progress);

  // Results. Call after Run.
  std::span<const float> weights(uint32_t segment) { return segments_[segment].versions.newest(); }
  // Empty if the optimizer keeps none.
  std::span<const float> m(uint32_t segment) const { return segments_[segment].m; }
  std::span<const float> v(uint32_t segment) const { return segments_[segment].v; }

 private:
  struct SegmentState {
    WeightVersions versions;
    std::vector<float> m, v;
    size_t applied = 0;                               // updates applied
    std::map<uint64_t, std::vector<size_t>> waiting;  // steps, by the version that they wait for
  };
  struct StepState {
    uint32_t missing = 0;  // segments that have not reached its version
    uint32_t unapplied = 0;
    std::unique_ptr<PushedGradient> gradient;  // from Compute until it is fully applied
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
  std::vector<StepState> steps_;             // by index in run_
  std::vector<size_t> ready_;                // steps that can be computed
  std::vector<std::vector<float>> weights_;  // by block, for the step being computed
  std::vector<float> compensated_;
  size_t updates_ = 0;
};

}  // namespace tug

#endif  // TUG_LAB_RECORDED_REEXECUTION_H_
