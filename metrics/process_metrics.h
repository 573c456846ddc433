// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_PROCESS_METRICS_H_
#define TUG_METRICS_PROCESS_METRICS_H_

#include <cstdint>
#include <span>

#include "metrics/metric_row.h"

namespace tug {

// Figures that the kernel reports about a process, under the names of all Prometheus libraries.
struct ProcessFigures {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0;  // including memory shared with other processes
  uint64_t virtual_bytes = 0;
  uint64_t open_files = 0;
  uint64_t max_files = 0;
  double start_seconds = 0;  // since the Unix epoch
};

// Reads the figures of this process; unavailable ones are 0. Thread-safe.
ProcessFigures ReadProcessFigures();

std::span<const MetricRow<ProcessFigures>> ProcessMetrics();

}  // namespace tug

#endif  // TUG_METRICS_PROCESS_METRICS_H_
