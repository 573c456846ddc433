#ifndef TUG_COORDINATOR_STEP_COLLECTOR_H_
#define TUG_COORDINATOR_STEP_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/step_metrics.h"

namespace tug {

// How far a virtual worker is whose clock is its own.
struct OwnPace {
  uint64_t clock = 0;  // the first that it has not reported
  // How long a step takes it by its newest reports, within 1e-6 and 1e6; 0 before the first that
  // says.
  double seconds = 0;
};

// Decides which reports make a step of the job. Not thread-safe.
class StepCollector {
 public:
  // Clocks beyond the oldest incomplete one for which reports are kept; under BSP workers are at
  // most one step apart, and reports of the slower one arrive within a failure timeout.
  static constexpr uint64_t kMaxOpenSteps = 1 << 16;

  virtual ~StepCollector() = default;

  // As in Progress; of known virtual workers only.
  virtual void Add(uint32_t node_id, const StepReport& report) = 0;
  virtual void SetLost(uint32_t virtual_worker, uint64_t clock) = 0;
  virtual void SetAway(uint32_t virtual_worker, bool away) = 0;

  // The next step, if it is complete. To be asked until there is none, after each of the above.
  virtual std::optional<StepMetrics> TakeStep() = 0;

  // None: all virtual workers are at the clock of the job.
  virtual std::optional<OwnPace> pace(uint32_t virtual_worker) const = 0;
};

// A step is all virtual workers' reports of a clock.
std::unique_ptr<StepCollector> StepsByClock(uint32_t virtual_workers, uint64_t start_version);
// A step is as many reports as there are virtual workers, in order of arrival. `clocks`: by virtual
// worker, where each begins.
std::unique_ptr<StepCollector> StepsByArrival(const std::vector<uint64_t>& clocks,
                                              uint64_t start_version);

}  // namespace tug

#endif  // TUG_COORDINATOR_STEP_COLLECTOR_H_
