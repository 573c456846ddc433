// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_CARRIED_CLOCKS_H_
#define TUG_WORKER_CORE_CARRIED_CLOCKS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "config/sync_mode.h"
#include "exchange/step_gate.h"

namespace tug {

// Order to pull the weights of a block.
struct PullOrder {
  uint32_t block = 0;
  uint64_t clock = 0;  // clock whose step begins with them
  bool exact = false;  // with all pushes before `clock`, where versions count pushes
  // First contiguous run of the virtual workers that take the step at `clock`, by index among those
  // run here. Others may have reached their end before it. Defaults if none takes it.
  uint32_t first_taker = 0;
  uint32_t takers = 1;

  friend bool operator==(const PullOrder&, const PullOrder&) = default;
};

// Steps that a virtual worker skips: [first, end).
struct SkippedSteps {
  uint32_t virtual_worker = 0;  // index among those run here
  uint64_t first = 0;
  uint64_t end = 0;

  friend bool operator==(const SkippedSteps&, const SkippedSteps&) = default;
};

// Next clock of each virtual worker that this process runs, and the gate at which they end: decides
// who takes which step, and which weights to pull for it. Pure.
class CarriedClocks {
 public:
  CarriedClocks(const SyncMode& mode, uint64_t steps, std::vector<uint64_t> clocks)
      : mode_(mode), steps_(steps), clocks_(std::move(clocks)) {}

  // Clocks of the next steps, by index.
  std::span<const uint64_t> all() const { return clocks_; }
  const StepGate& gate() const { return gate_; }
  void SetGate(StepGate gate);
  void Carry(std::vector<uint64_t> clocks, StepGate gate);

  // Lowest clock of the virtual workers that have not ended; if all have, the highest clock.
  uint64_t StepClock() const;
  bool AllFinished() const;
  bool MayBegin(uint64_t clock) const { return gate_.MayBegin(clock, steps_); }
  std::vector<uint32_t> TakersOf(uint64_t clock) const;
  // Records that the virtual worker has taken the step at `clock`.
  void OnTaken(uint32_t virtual_worker, uint64_t clock) { clocks_[virtual_worker] = clock + 1; }
  // Advances all to `clock` at least; appends the steps left out to `skipped`.
  void SkipTo(uint64_t clock, std::vector<SkippedSteps>& skipped);

  // Pull for the step at `clock`.
  PullOrder Order(uint32_t block, uint64_t clock) const;
  // Pull for the step after `takers` have taken the one at `clock`; LastOrder if none follows.
  PullOrder OrderAfter(uint32_t block, uint64_t clock, std::span<const uint32_t> takers) const;
  // Pull for the last evaluation: exact, at the job's last clock, where versions count pushes; else
  // at StepClock(). REQUIRES: AllFinished.
  PullOrder LastOrder(uint32_t block) const;

 private:
  bool Takes(uint32_t virtual_worker, uint64_t clock) const {
    return clocks_[virtual_worker] == clock && !gate_.IsPastEnd(virtual_worker, clock);
  }

  SyncMode mode_;
  uint64_t steps_;  // train.steps
  std::vector<uint64_t> clocks_;
  StepGate gate_;
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_CARRIED_CLOCKS_H_
