#ifndef TUG_COORDINATOR_PROGRESS_H_
#define TUG_COORDINATOR_PROGRESS_H_

// Turns what virtual workers report into steps and evaluations of the job.
//
// A step is complete when every virtual worker has reported it. Its loss is summed in
// virtual-worker order, whatever order reports arrive in and whichever worker carries them, so its
// bits do not depend on the number of workers.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

struct StepMetrics {
  uint64_t step = 0;  // completed steps: clock + 1
  double loss = 0;    // mean over targets
  uint64_t tokens = 0;
  uint64_t targets = 0;
  double seconds = 0;         // of the slowest worker
  double wait_seconds = 0;    // of the worker that waited longest
  uint64_t pushed_bytes = 0;  // of all workers
  uint64_t pulled_bytes = 0;
  double compute_seconds = 0;        // forward and backward, of the worker that computed longest
  double communication_seconds = 0;  // with a push or pull open, of the worker with the most
  // Over the workers. They take turns at being slow, so only these say how long steps take.
  double mean_seconds = 0;
  double mean_wait_seconds = 0;
  // The part of a worker's communication that its computing hid, 1 - wait / communication; of the
  // worker that hid least. 1 without communication.
  double overlap = 1;
  // Number of the schedule that it ran under; none: workers do not agree.
  std::optional<uint32_t> schedule;
};

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
  // Clocks beyond the oldest incomplete one for which reports are kept; under BSP workers are at
  // most one step apart, and reports of the slower one arrive within a failure timeout.
  static constexpr uint64_t kMaxOpenSteps = 1 << 16;
  static constexpr size_t kMaxOpenEvals = 64;

  // REQUIRES: virtual_workers >= 1.
  Progress(uint32_t virtual_workers, uint64_t start_version);

  // A report of worker `node_id`. Repeats, reports of completed steps and reports that no correct
  // worker sends (unknown virtual worker, clock beyond the window) change nothing.
  void AddStep(uint32_t node_id, const StepReport& report);
  void AddEval(const EvalReport& report);

  // Steps, in order, and evaluations completed since the last call.
  std::vector<StepMetrics> TakeSteps();
  std::vector<EvalMetrics> TakeEvals();

  uint64_t step() const { return next_clock_; }         // completed steps
  std::optional<double> loss() const { return loss_; }  // of the newest step
  std::optional<EvalMetrics> newest_eval() const { return newest_eval_; }
  // Over the last kRateSteps steps; 0 before the first.
  double tokens_per_second() const;
  double seconds_per_step() const;
  static constexpr size_t kRateSteps = 50;

 private:
  struct Share {
    bool reported = false;
    uint32_t node_id = 0;
    StepReport report;
  };
  struct OpenStep {
    uint32_t reported = 0;
    std::vector<Share> shares;  // by virtual worker
  };
  struct OpenEval {
    uint32_t reported = 0;
    std::vector<std::optional<EvalReport>> shares;
  };

  using EvalKey = std::pair<uint64_t, bool>;  // version, whether it is the last evaluation

  StepMetrics Fold(const OpenStep& open) const;
  EvalMetrics Fold(const EvalKey& key, const OpenEval& open) const;

  const uint32_t virtual_workers_;
  uint64_t next_clock_;
  std::deque<OpenStep> open_steps_;  // of clocks next_clock_, next_clock_ + 1, ...
  std::map<EvalKey, OpenEval> open_evals_;
  EvalKey newest_eval_key_{0, false};  // if there is a newest_eval_
  std::optional<double> loss_;
  std::optional<EvalMetrics> newest_eval_;
  std::vector<StepMetrics> steps_;
  std::vector<EvalMetrics> evals_;
  std::deque<StepMetrics> recent_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_H_
