// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_SERVER_METRICS_H_
#define TUG_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "metrics/metric_row.h"

namespace tug {

// Figures of one lane, as of its last tick.
struct LaneFigures {
  // Seconds by kind of work, since the lane started.
  double sum_seconds = 0;  // decoding and summing pushes
  double optimizer_seconds = 0;
  double serve_seconds = 0;         // answering pulls
  double cpu_seconds = 0;           // of the lane's thread
  uint64_t updates = 0;             // segment updates
  std::vector<uint64_t> staleness;  // number of updates with staleness 0, 1, 2, ...
  uint64_t dropped_pushes = 0;      // too late for their update
  uint64_t deferred_pushes = 0;     // for lack of memory
  uint64_t repeated_messages = 0;
  uint64_t messages_dropped = 0;   // malformed or hostile
  uint64_t messages_refused = 0;   // from an old view or timeline
  uint64_t waiting_bytes = 0;      // requested weights that wait for their turn and for credit
  uint64_t outstanding_bytes = 0;  // sent to workers and not acknowledged
  uint64_t most_outstanding_bytes = 0;
  uint64_t socket_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t optimizer_bytes = 0;
  uint64_t sum_bytes = 0;
  uint64_t cached_bytes = 0;
  uint64_t shared_bytes = 0;  // memory readable by other processes
};

struct ServerFigures {
  std::vector<LaneFigures> lanes;
  uint64_t predicted_held_bytes = 0;
};

std::span<const MetricRow<ServerFigures>> ServerMetrics();

}  // namespace tug

#endif  // TUG_METRICS_SERVER_METRICS_H_
