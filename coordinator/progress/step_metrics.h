// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_STEP_METRICS_H_
#define TUG_COORDINATOR_PROGRESS_STEP_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// How a virtual worker spent one of its steps; times are those of its worker.
struct WorkerStepTimes {
  uint32_t virtual_worker = 0;
  bool skipped = false;
  double seconds = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double straggle_seconds = 0;
};

// One step of the job. Where every push is an update (sync.policy SSP, ASP), it consists of
// consecutive reports, as many as there are virtual workers, from any of them.
struct StepMetrics {
  uint64_t step = 0;  // completed steps: clock + 1
  double loss = 0;    // mean over targets; NaN if there is no report
  uint64_t tokens = 0;
  uint64_t targets = 0;
  // Step time of the slowest worker. Where every push is an update: mean over the reports, which is
  // how long it takes for that many to arrive.
  double seconds = 0;
  double wait_seconds = 0;    // of the worker that waited longest
  uint64_t pushed_bytes = 0;  // of all workers
  uint64_t pulled_bytes = 0;
  double compute_seconds = 0;        // forward and backward, of the worker that computed longest
  double communication_seconds = 0;  // with a push or pull open; of the worker with most
  double straggle_seconds = 0;       // artificial delay (`straggler`); of the worker with most
  // Mean over workers. Workers alternate at being slow, so only these tell how long steps take.
  double mean_seconds = 0;
  double mean_wait_seconds = 0;
  // Fraction of communication hidden by computation, 1 - wait / communication; of the worker that
  // hid least. 1 without communication.
  double overlap = 1;
  // With error feedback: root mean square over virtual workers of the norms of their residuals
  // (StepReport.residual_squares).
  double residual_norm = 0;
  uint32_t skipped = 0;  // virtual workers that skipped it because they were behind (BACKUP)
  // Number of the schedule it ran under; none: workers differ.
  std::optional<uint32_t> schedule;
  std::vector<WorkerStepTimes> workers;  // one per report

  // 0 for a step without duration.
  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

// Totals of each virtual worker over the steps of a job. Not thread-safe.
class WorkerTotals {
 public:
  struct Total {
    uint64_t steps = 0;
    uint64_t skipped = 0;  // of `steps`
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

  // Totals by virtual worker.
  const std::map<uint32_t, Total>& totals() const { return totals_; }

 private:
  std::map<uint32_t, Total> totals_;
};

// A report and the worker that sent it.
struct StepShare {
  uint32_t node_id = 0;
  StepReport report;
};

// Combines the shares of step number `step`; sums are in the given order.
StepMetrics FoldStep(uint64_t step, std::span<const StepShare> shares);

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_STEP_METRICS_H_
