#ifndef TUG_COORDINATOR_STEP_METRICS_H_
#define TUG_COORDINATOR_STEP_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// How a virtual worker spent a step of its own; times are of the worker that carries it.
struct WorkerStepTimes {
  uint32_t virtual_worker = 0;
  bool skipped = false;
  double seconds = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double straggle_seconds = 0;
};

// One step of the job. Where every push is an update (sync.policy SSP, ASP) it is the reports that
// came one after the other, as many as there are virtual workers, from whomever they came.
struct StepMetrics {
  uint64_t step = 0;  // completed steps: clock + 1
  double loss = 0;    // mean over targets; not a number if no report of the step has come
  uint64_t tokens = 0;
  uint64_t targets = 0;
  // Of the slowest worker; where every push is an update, the mean over the reports, which is how
  // long so many of them take to come.
  double seconds = 0;
  double wait_seconds = 0;    // of the worker that waited longest
  uint64_t pushed_bytes = 0;  // of all workers
  uint64_t pulled_bytes = 0;
  double compute_seconds = 0;        // forward and backward, of the worker that computed longest
  double communication_seconds = 0;  // with a push or pull open, of the worker with the most
  double straggle_seconds = 0;       // spent as `straggler` says, of the worker that spent most
  // Over the workers. They take turns at being slow, so only these say how long steps take.
  double mean_seconds = 0;
  double mean_wait_seconds = 0;
  // The part of a worker's communication that its computing hid, 1 - wait / communication; of the
  // worker that hid least. 1 without communication.
  double overlap = 1;
  // With error feedback: root mean square, over virtual workers, of the norm of what their pushes
  // have left out so far (StepReport.residual_squares).
  double residual_norm = 0;
  uint32_t skipped = 0;  // virtual workers that were behind, and left it out (sync.policy BACKUP)
  // Number of the schedule that it ran under; none: workers do not agree.
  std::optional<uint32_t> schedule;
  std::vector<WorkerStepTimes> workers;  // a report each

  // 0 of a step that took no time.
  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

// How each virtual worker spent the steps of a job, added up. Not thread-safe.
class WorkerTotals {
 public:
  struct Total {
    uint64_t steps = 0;
    uint64_t skipped = 0;  // of them
    double seconds = 0;
    double compute_seconds = 0;
    double wait_seconds = 0;
    double straggle_seconds = 0;
  };

  void Add(const StepMetrics& step) {
    for (const WorkerStepTimes& times : step.workers) {
      Total& total = totals_[times.virtual_worker];
      ++total.steps;
      total.skipped += times.skipped ? 1 : 0;
      total.seconds += times.seconds;
      total.compute_seconds += times.compute_seconds;
      total.wait_seconds += times.wait_seconds;
      total.straggle_seconds += times.straggle_seconds;
    }
  }

  // By virtual worker.
  const std::map<uint32_t, Total>& totals() const { return totals_; }

 private:
  std::map<uint32_t, Total> totals_;
};

// A report, and the worker it is of.
struct StepShare {
  uint32_t node_id = 0;
  StepReport report;
};

// What the shares of step number `step` add up to, sums in the order given.
StepMetrics FoldStep(uint64_t step, std::span<const StepShare> shares);

}  // namespace tug

#endif  // TUG_COORDINATOR_STEP_METRICS_H_
