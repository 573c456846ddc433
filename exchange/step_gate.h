#ifndef TUG_EXCHANGE_STEP_GATE_H_
#define TUG_EXCHANGE_STEP_GATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "exchange/control_board.h"

namespace tug {

// The coordinator's orders on the steps of a worker's virtual workers, and the rules by which they
// pass the gate. Every worker keeps to them, a program of its own too.
struct StepGate {
  bool paused = true;          // no further step begins before it is known where steps end
  uint64_t final_version = 0;  // 0: not known
  // The clocks at which virtual workers end, by index among those carried, and the largest of the
  // job's. Empty: not known.
  std::vector<uint64_t> final_clocks = {};
  uint64_t last_clock = 0;

  // Whether it is known where virtual workers end.
  bool FinalKnown() const { return !final_clocks.empty(); }
  // Whether a virtual worker, by index among those carried, takes no step at `clock`.
  bool IsPastEnd(uint32_t index, uint64_t clock) const {
    return FinalKnown() && clock >= final_clocks[index];
  }
  // Whether a step that is not past the end may begin. `steps`: train.steps, at which none begins
  // before it is known where virtual workers end (coordinator/job_end.h).
  bool MayBegin(uint64_t clock, uint64_t steps) const {
    return FinalKnown() || !(paused || clock >= steps);
  }
};

// The gate for the virtual workers of `carried`. It stays shut before `go`: earlier orders already
// name the job's final version. Where the orders name no clocks, that version is all virtual
// workers' last clock.
StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried);

}  // namespace tug

#endif  // TUG_EXCHANGE_STEP_GATE_H_
