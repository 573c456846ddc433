// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_STEP_GATE_H_
#define TUG_EXCHANGE_STEP_GATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "control/control_board.h"

namespace tug {

// The coordinator's orders on steps, for the virtual workers of a worker, and the rules by which
// steps may begin. All workers follow them, external ones too.
struct StepGate {
  bool paused = true;          // no step begins until the final clocks are known
  uint64_t final_version = 0;  // 0: unknown
  // End clocks of the virtual workers, by index among those of this worker, and the largest end
  // clock of the job. Empty: unknown.
  std::vector<uint64_t> final_clocks = {};
  uint64_t last_clock = 0;

  // Whether the end clocks are known.
  bool FinalKnown() const { return !final_clocks.empty(); }
  // Whether a virtual worker, by index among those of this worker, has no step at `clock`.
  bool IsPastEnd(uint32_t index, uint64_t clock) const {
    return FinalKnown() && clock >= final_clocks[index];
  }
  // Whether a step before the end may begin. `steps`: train.steps; no step begins there until the
  // end clocks are known (coordinator/progress/job_end.h).
  bool MayBegin(uint64_t clock, uint64_t steps) const {
    return FinalKnown() || !(paused || clock >= steps);
  }
};

// Gate for the virtual workers in `carried`. Closed before `go`, even though earlier orders already
// name the job's final version. If the orders have no end clocks, every virtual worker ends at the
// final version.
StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried);

}  // namespace tug

#endif  // TUG_EXCHANGE_STEP_GATE_H_
