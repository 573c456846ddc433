#ifndef TUG_EXPERIMENT_WORKER_TIMELINE_H_
#define TUG_EXPERIMENT_WORKER_TIMELINE_H_

// Who computes and who waits, step by step, in all workers of a job side by side. The lectures'
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
  std::vector<TimeRange> waits;  // for weights, in order, apart from one another
};

struct WorkerTimeline {
  uint32_t virtual_worker = 0;  // the first that it carries
  std::vector<WorkerStep> steps;
};

// From a trace.json (coordinator/trace_file.h), by virtual worker. Waits that touch are one.
// Errors: NOT_FOUND (no file), INVALID_ARGUMENT (no trace, or no steps in it).
absl::StatusOr<std::vector<WorkerTimeline>> ReadWorkerTimelines(const std::string& trace_path);

// When the worker that is last with its step number `count` (counted from the first traced one) has
// done it; the end of what there is if nobody did so many.
double EndOfSteps(const std::vector<WorkerTimeline>& workers, size_t count);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WORKER_TIMELINE_H_
