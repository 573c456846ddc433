// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_WORKER_METRICS_H_
#define TUG_METRICS_WORKER_METRICS_H_

#include <cstdint>
#include <span>

#include "metrics/metric_row.h"
#include "metrics/step_totals.h"

namespace tug {

// Figures of a worker. Those of the exchange restart at 0 with each timeline.
struct WorkerFigures {
  StepTotals::Figures steps;
  uint64_t clock = 0;         // the last step begun, 0-based
  bool ready = false;         // the figures below are valid
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  uint64_t pulled_bytes = 0;
  uint64_t waiting_bytes = 0;      // pushes that wait for their turn and for credit
  uint64_t outstanding_bytes = 0;  // sent and not acknowledged
  uint64_t most_outstanding_bytes = 0;
  double encode_seconds = 0;
  uint64_t resent = 0;
  uint64_t deferred = 0;  // pushes a lane had no memory for yet
  uint64_t dropped_pushes = 0;
  uint64_t refused = 0;  // by lanes, because of an old view
  uint64_t socket_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t messages_dropped = 0;  // malformed or hostile
  uint64_t messages_lost = 0;     // because the peer disconnected
  uint64_t weight_bytes = 0;
  uint64_t gradient_bytes = 0;
  uint64_t predicted_held_bytes = 0;
  uint64_t shared_bytes = 0;
};

std::span<const MetricRow<WorkerFigures>> WorkerMetrics();

}  // namespace tug

#endif  // TUG_METRICS_WORKER_METRICS_H_
