// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_WORKER_TIMELINE_H_
#define TUG_LAB_EXPERIMENT_RESULTS_WORKER_TIMELINE_H_

// When the workers of a job compute and wait, step by step and side by side. As in the lectures'
// figure of synchronous and asynchronous training.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// Begin and end, in seconds since the first step of any worker in the trace began.
struct TimeRange {
  double begin_seconds = 0;
  double end_seconds = 0;

  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

struct WorkerStep {
  uint64_t step = 0;  // of this worker, 1-based
  TimeRange whole;
  std::vector<TimeRange> waits;  // for weights; in order, disjoint
};

struct WorkerTimeline {
  uint32_t virtual_worker = 0;  // the lowest one that the worker runs
  std::vector<WorkerStep> steps;
};

// Reads a trace.json (coordinator/trace/trace_file.h), by virtual worker. Merges waits that touch.
// Errors: NOT_FOUND (no file), INVALID_ARGUMENT (not a trace, or no steps in it).
absl::StatusOr<std::vector<WorkerTimeline>> ReadWorkerTimelines(const std::string& trace_path);

// When the slowest worker completed its step number `count`, counted from the first traced one; the
// end of all steps if no worker completed that many.
double EndOfSteps(const std::vector<WorkerTimeline>& workers, size_t count);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_WORKER_TIMELINE_H_
