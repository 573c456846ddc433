#ifndef TUG_COORDINATOR_PROGRESS_H_
#define TUG_COORDINATOR_PROGRESS_H_

// Turns what virtual workers report into steps and evaluations of the job.
//
// A step is complete when every virtual worker has reported it. Its loss is summed in
// virtual-worker order, whatever order reports arrive in and whichever worker carries them, so its
// bits do not depend on the number of workers.
//
// Where every push is an update (sync.policy SSP, ASP) virtual workers are at clocks of their own:
// step k is complete when their clocks, as far as reported, add up to k times their number. What is
// said of it is of the reports that came since step k - 1 was.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/step_collector.h"
#include "coordinator/step_metrics.h"
#include "proto/control.pb.h"

namespace tug {

struct EvalMetrics {
  uint64_t version = 0;
  double loss = 0;      // mean over targets
  double accuracy = 0;  // part of the targets that were thought likeliest
  uint64_t targets = 0;
  bool final = false;  // the last evaluation of the job, over the whole validation split
};

// Not thread-safe.
class Progress {
 public:
  // Evaluations whose reports are kept: so many, and more as long as they are of no more than so
  // many shares. Where every push is an update a slow virtual worker may be many of them behind.
  static constexpr size_t kMaxOpenEvals = 64;
  static constexpr size_t kMaxOpenEvalShares = 1 << 20;

  struct Options {
    uint32_t virtual_workers = 1;  // at least 1
    uint64_t start_version = 0;
    // By virtual worker, where it begins if its clock is its own; empty: all share the job's.
    std::vector<uint64_t> start_clocks = {};
  };
  explicit Progress(const Options& options);

  // A report of worker `node_id`. Repeats, reports of completed steps and reports that no correct
  // worker sends (unknown virtual worker, clock beyond the window) change nothing.
  void AddStep(uint32_t node_id, const StepReport& report);
  void AddEval(const EvalReport& report);
  // The worker that took the virtual worker's steps before `clock` is gone: those that it has not
  // reported never will be, and steps are complete without.
  void SetLost(uint32_t virtual_worker, uint64_t clock);
  // Nobody carries the virtual worker and nobody waits for it: steps and evaluations are complete
  // without it.
  void SetAway(uint32_t virtual_worker, bool away);

  // Steps, in order, and evaluations completed since the last call.
  std::vector<StepMetrics> TakeSteps();
  std::vector<EvalMetrics> TakeEvals();

  uint64_t step() const { return completed_; }
  // REQUIRES: a virtual worker of the job.
  std::optional<OwnPace> pace(uint32_t virtual_worker) const {
    return collector_->pace(virtual_worker);
  }
  std::optional<double> loss() const { return loss_; }  // of the newest step
  std::optional<EvalMetrics> newest_eval() const { return newest_eval_; }
  // Over the last kRateSteps steps; 0 before the first.
  double tokens_per_second() const;
  double seconds_per_step() const;
  static constexpr size_t kRateSteps = 50;

 private:
  struct OpenEval {
    std::vector<std::optional<EvalReport>> shares;  // by virtual worker
  };

  using EvalKey = std::pair<uint64_t, bool>;  // version, whether it is the last evaluation
  using OpenEvals = std::map<EvalKey, OpenEval>;

  void CompleteSteps();
  // Of these, evaluations that all have reported who are there.
  void CompleteEvals(OpenEvals::iterator eval, OpenEvals::iterator end);
  EvalMetrics Fold(const EvalKey& key, const OpenEval& open) const;

  std::unique_ptr<StepCollector> collector_;
  uint64_t completed_;
  std::vector<bool> away_;  // by virtual worker
  OpenEvals open_evals_;
  EvalKey newest_eval_key_{0, false};  // if there is a newest_eval_
  std::optional<double> loss_;
  std::optional<EvalMetrics> newest_eval_;
  std::vector<StepMetrics> steps_;
  std::vector<EvalMetrics> evals_;
  std::deque<StepMetrics> recent_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_H_
