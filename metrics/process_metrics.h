#ifndef TUG_METRICS_PROCESS_METRICS_H_
#define TUG_METRICS_PROCESS_METRICS_H_

#include <cstdint>
#include <span>

#include "metrics/metric_row.h"

namespace tug {

// What the kernel says of a process, under the names that all of Prometheus' libraries give it.
struct ProcessFigures {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0;  // memory shared with other processes included
  uint64_t virtual_bytes = 0;
  uint64_t open_files = 0;
  uint64_t most_files = 0;
  double start_seconds = 0;  // since the Unix epoch
};

// Of this process; what the kernel does not say is 0. Thread-safe.
ProcessFigures ReadProcessFigures();

std::span<const MetricRow<ProcessFigures>> ProcessMetrics();

}  // namespace tug

#endif  // TUG_METRICS_PROCESS_METRICS_H_
