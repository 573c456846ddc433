// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_COORDINATOR_METRICS_H_
#define TUG_METRICS_COORDINATOR_METRICS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "metrics/metric_row.h"
#include "proto/control.pb.h"

namespace tug {

// Totals of a job since its coordinator began; a recovered coordinator restores them from the
// journal.
struct JobTotals {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  uint64_t pushed_bytes = 0;  // by all workers
  uint64_t pulled_bytes = 0;
  uint64_t evaluations = 0;
  std::optional<double> validation_loss;  // of the newest evaluation
  uint64_t checkpoints = 0;
  uint64_t checkpoint_bytes = 0;
  double checkpoint_write_seconds = 0;
  double checkpoint_pause_seconds =
      0;  // sum over checkpoints of the longest stop of a lane or worker
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
