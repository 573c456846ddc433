// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_PROGRESS_H_
#define TUG_COORDINATOR_PROGRESS_PROGRESS_H_

// Turns reports of virtual workers into steps and evaluations of the job.
//
// A step is complete when all virtual workers have reported it. Its loss is summed in
// virtual-worker order, whatever order reports arrive in and whichever worker runs them, so its
// bits do not depend on the number of workers.
//
// Where every push is an update (sync.policy SSP, ASP), virtual workers have clocks of their own:
// step k is complete when their reported clocks add up to k times their number. Its metrics cover
// the reports that arrived since step k - 1 was complete.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/progress/step_collector.h"
#include "coordinator/progress/step_metrics.h"
#include "proto/control.pb.h"

namespace tug {

struct EvalMetrics {
  uint64_t version = 0;
  double loss = 0;      // mean over targets
  double accuracy = 0;  // fraction of targets that were predicted as most likely
  uint64_t targets = 0;
  bool final = false;  // the last evaluation of the job, over the whole validation split
};

// Not thread-safe.
class Progress {
 public:
  // Max evaluations with reports pending: kMaxOpenEvals, or more while they have at most
  // kMaxOpenEvalShares shares. Where every push is an update, a slow virtual worker may be many
  // evaluations behind.
  static constexpr size_t kMaxOpenEvals = 64;
  static constexpr size_t kMaxOpenEvalShares = 1 << 20;

  struct Options {
    uint32_t virtual_workers = 1;  // at least 1
    uint64_t start_version = 0;
    // By virtual worker, its first clock, if clocks are its own; empty: all share the job's.
    std::vector<uint64_t> start_clocks = {};
  };
  explicit Progress(const Options& options);

  // Adds a report of worker `node_id`. Ignores repeats, reports of completed steps, and reports
  // that no correct worker sends (unknown virtual worker, clock beyond the window).
  void AddStep(uint32_t node_id, const StepReport& report);
  void AddEval(const EvalReport& report);
  // The worker that ran the virtual worker before `clock` is lost: its unreported steps will never
  // be reported, and steps complete without them.
  void SetLost(uint32_t virtual_worker, uint64_t clock);
  // The virtual worker has no worker and is not waited for: steps and evaluations complete without
  // it.
  void SetAway(uint32_t virtual_worker, bool away);

  // Steps, in order, and evaluations, completed since the last call.
  std::vector<StepMetrics> TakeSteps();
  std::vector<EvalMetrics> TakeEvals();

  uint64_t step() const { return completed_; }
  // REQUIRES: a virtual worker of the job.
  std::optional<OwnPace> pace(uint32_t virtual_worker) const {
    return collector_->pace(virtual_worker);
  }
  std::optional<double> loss() const { return loss_; }  // of the newest step
  std::optional<EvalMetrics> newest_eval() const { return newest_eval_; }
  // Means over the last kRateSteps steps; 0 before the first.
  double tokens_per_second() const;
  double seconds_per_step() const;
  static constexpr size_t kRateSteps = 50;

 private:
  struct OpenEval {
    std::vector<std::optional<EvalReport>> shares;  // by virtual worker
  };

  using EvalKey = std::pair<uint64_t, bool>;  // version, EvalMetrics::final
  using OpenEvals = std::map<EvalKey, OpenEval>;

  void CompleteSteps();
  // Completes those evaluations in the range that all present virtual workers have reported.
  void CompleteEvals(OpenEvals::iterator eval, OpenEvals::iterator end);
  EvalMetrics Fold(const EvalKey& key, const OpenEval& open) const;

  std::unique_ptr<StepCollector> collector_;
  uint64_t completed_;
  std::vector<bool> away_;  // by virtual worker
  OpenEvals open_evals_;
  EvalKey newest_eval_key_{0, false};  // valid if newest_eval_ has a value
  std::optional<double> loss_;
  std::optional<EvalMetrics> newest_eval_;
  std::vector<StepMetrics> steps_;
  std::vector<EvalMetrics> evals_;
  std::deque<StepMetrics> recent_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_PROGRESS_H_
