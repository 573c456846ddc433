#ifndef TUG_METRICS_COORDINATOR_METRICS_H_
#define TUG_METRICS_COORDINATOR_METRICS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "metrics/metric_row.h"
#include "proto/control.pb.h"

namespace tug {

// What a job has come to, added up since its coordinator, or the one that was taken up, began.
struct JobTotals {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  uint64_t pushed_bytes = 0;  // of all workers
  uint64_t pulled_bytes = 0;
  uint64_t evaluations = 0;
  std::optional<double> validation_loss;  // of the newest
  uint64_t checkpoints = 0;
  uint64_t checkpoint_bytes = 0;
  double checkpoint_write_seconds = 0;
  double checkpoint_pause_seconds = 0;  // the longest stop of a lane for each
  uint64_t rollbacks = 0;
  uint64_t notices = 0;
};

struct CoordinatorFigures {
  StatusReply status;
  JobTotals totals;
};

std::span<const MetricRow<CoordinatorFigures>> CoordinatorMetrics();

}  // namespace tug

#endif  // TUG_METRICS_COORDINATOR_METRICS_H_
