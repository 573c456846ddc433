#ifndef TUG_METRICS_SERVER_METRICS_H_
#define TUG_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "metrics/metric_row.h"

namespace tug {

// Of one lane, as it was at its last tick.
struct LaneFigures {
  // By kind of work, since the lane began.
  double sum_seconds = 0;  // decoding and summing pushes
  double optimizer_seconds = 0;
  double serve_seconds = 0;         // answering pulls
  double cpu_seconds = 0;           // of its thread
  uint64_t updates = 0;             // of segments
  std::vector<uint64_t> staleness;  // how many updates had 0, 1, 2, ...
  uint64_t dropped_pushes = 0;      // came too late
  uint64_t deferred_pushes = 0;     // for want of memory
  uint64_t repeated_messages = 0;
  uint64_t messages_dropped = 0;   // malformed or hostile
  uint64_t messages_refused = 0;   // of an old view or timeline
  uint64_t waiting_bytes = 0;      // of weights asked for: wait for their turn and for credit
  uint64_t outstanding_bytes = 0;  // sent to workers and not received
  uint64_t most_outstanding_bytes = 0;
  uint64_t socket_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t optimizer_bytes = 0;
  uint64_t sum_bytes = 0;
  uint64_t cached_bytes = 0;
  uint64_t shared_bytes = 0;  // that other processes may read
};

struct ServerFigures {
  std::vector<LaneFigures> lanes;
  uint64_t predicted_held_bytes = 0;
};

std::span<const MetricRow<ServerFigures>> ServerMetrics();

}  // namespace tug

#endif  // TUG_METRICS_SERVER_METRICS_H_
