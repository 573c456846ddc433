#ifndef TUG_WORKER_CARRIED_CLOCKS_H_
#define TUG_WORKER_CARRIED_CLOCKS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exchange/step_gate.h"
#include "proto/sync_mode.h"

namespace tug {

// Weights of a block to be asked for.
struct PullOrder {
  uint32_t block = 0;
  uint64_t clock = 0;  // that is to begin with them
  bool exact = false;  // with all pushes before it, where versions do not tell
  // Of those that take the step at that clock the first contiguous run, by index among those
  // carried. Others may have come to their end before it. If none takes it: any.
  uint32_t first_taker = 0;
  uint32_t takers = 1;

  friend bool operator==(const PullOrder&, const PullOrder&) = default;
};

// Steps of a virtual worker that are not taken: [first, end).
struct SkippedSteps {
  uint32_t virtual_worker = 0;  // index among those carried
  uint64_t first = 0;
  uint64_t end = 0;

  friend bool operator==(const SkippedSteps&, const SkippedSteps&) = default;
};

// The clocks of the virtual workers that a process carries, that of each one's next step, and the
// gate where they end: who takes which step, and whose weights its pulls ask for. Pure.
class CarriedClocks {
 public:
  CarriedClocks(const SyncMode& mode, uint64_t steps, std::vector<uint64_t> clocks)
      : mode_(mode), steps_(steps), clocks_(std::move(clocks)) {}

  // Of the next steps, by index.
  std::span<const uint64_t> all() const { return clocks_; }
  const StepGate& gate() const { return gate_; }
  void SetGate(StepGate gate);
  void Carry(std::vector<uint64_t> clocks, StepGate gate);

  // The lowest clock of those that go on; if none does, the highest of all.
  uint64_t StepClock() const;
  bool AllFinished() const;
  bool MayBegin(uint64_t clock) const { return gate_.MayBegin(clock, steps_); }
  std::vector<uint32_t> TakersOf(uint64_t clock) const;
  // The virtual worker has taken the step at this clock.
  void OnTaken(uint32_t virtual_worker, uint64_t clock) { clocks_[virtual_worker] = clock + 1; }
  // All are at `clock` at least; `skipped` gets what they leave out.
  void SkipTo(uint64_t clock, std::vector<SkippedSteps>& skipped);

  // Of the step at `clock`.
  PullOrder Order(uint32_t block, uint64_t clock) const;
  // Of the step that follows when these have taken the one at `clock`; LastOrder if none does.
  PullOrder OrderAfter(uint32_t block, uint64_t clock, std::span<const uint32_t> takers) const;
  // Of the last evaluation: of the job's last clock, or where versions tell, of the clock that all
  // have come to. REQUIRES: AllFinished.
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

#endif  // TUG_WORKER_CARRIED_CLOCKS_H_
