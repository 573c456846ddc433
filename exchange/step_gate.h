#ifndef TUG_EXCHANGE_STEP_GATE_H_
#define TUG_EXCHANGE_STEP_GATE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "exchange/control_board.h"

namespace tug {

// The coordinator's orders on the steps of a worker's virtual workers.
struct StepGate {
  bool paused = true;          // no further step begins before it is known where steps end
  uint64_t final_version = 0;  // 0: not known
  // Where every push is an update: the clocks at which virtual workers end, by index among those
  // carried, and the largest of the job's. Empty: not known.
  std::vector<uint64_t> final_clocks = {};
  uint64_t last_clock = 0;
};

// The gate for the virtual workers of `carried`. It stays shut before `go`: earlier orders already
// name the job's final version.
StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried);

// The rules of a job by which its workers pass the gate. Every worker keeps to them, a program of
// its own too.
struct StepRules {
  bool update_per_push = false;  // of the job's policy
  // train.steps. With update_per_push no step begins at this clock or later before it is known
  // where virtual workers end (coordinator/job_end.h).
  uint64_t steps = std::numeric_limits<uint64_t>::max();

  // Whether it is known where virtual workers end.
  bool FinalKnown(const StepGate& gate) const;
  // Whether a virtual worker, by index among those carried, takes no step at `clock`.
  bool IsPastEnd(const StepGate& gate, uint32_t index, uint64_t clock) const;
  // Whether a step that is not past the end may begin.
  bool MayBegin(const StepGate& gate, uint64_t clock) const;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_STEP_GATE_H_
