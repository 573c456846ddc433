#ifndef TUG_COORDINATOR_WORKER_TOTALS_H_
#define TUG_COORDINATOR_WORKER_TOTALS_H_

#include <cstdint>
#include <map>

#include "coordinator/step_metrics.h"

namespace tug {

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

}  // namespace tug

#endif  // TUG_COORDINATOR_WORKER_TOTALS_H_
