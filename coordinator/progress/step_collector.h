// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_STEP_COLLECTOR_H_
#define TUG_COORDINATOR_PROGRESS_STEP_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/progress/step_metrics.h"

namespace tug {

// Progress of a virtual worker with a clock of its own.
struct OwnPace {
  uint64_t clock = 0;  // first clock it has not reported
  // Step time by its newest reports, between 1e-6 and 1e6; 0 before the first valid one.
  double seconds = 0;
};

// Decides which reports form a step of the job. Not thread-safe.
class StepCollector {
 public:
  // Max clocks beyond the oldest incomplete one for which reports are kept. Under BSP workers are
  // at most one step apart, and the slower one's reports arrive within a failure timeout.
  static constexpr uint64_t kMaxOpenSteps = 1 << 16;

  virtual ~StepCollector() = default;

  // As in Progress. REQUIRES: known virtual workers.
  virtual void Add(uint32_t node_id, const StepReport& report) = 0;
  virtual void SetLost(uint32_t virtual_worker, uint64_t clock) = 0;
  virtual void SetAway(uint32_t virtual_worker, bool away) = 0;

  // Next step, if complete. After each call above, call until there is none.
  virtual std::optional<StepMetrics> NextStep() = 0;

  // None: all virtual workers share the job's clock.
  virtual std::optional<OwnPace> pace(uint32_t virtual_worker) const = 0;
};

// A step is all virtual workers' reports of one clock.
std::unique_ptr<StepCollector> StepsByClock(uint32_t virtual_workers, uint64_t start_version);
// A step is as many reports as there are virtual workers, in order of arrival. `clocks`: first
// clock by virtual worker.
std::unique_ptr<StepCollector> StepsByArrival(const std::vector<uint64_t>& clocks,
                                              uint64_t start_version);

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_STEP_COLLECTOR_H_
