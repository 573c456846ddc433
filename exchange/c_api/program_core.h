// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_C_API_PROGRAM_CORE_H_
#define TUG_EXCHANGE_C_API_PROGRAM_CORE_H_

#include <cstdint>
#include <vector>

#include "blocks/requests.h"
#include "blocks/schedule.h"
#include "blocks/worker_place.h"
#include "control/control_board.h"
#include "exchange/step_gate.h"

namespace tug {

// Decisions of an external worker, as a state machine without I/O: when the program's next step may
// begin, what its pushes and pulls request, and what it reports. ExternalWorker adds threads and
// connections, lab/simulate/ virtual time.
//
// Not thread-safe. It exchanges state with the heartbeats through the control board, which is.
class ProgramCore {
 public:
  // REQUIRES: `board` outlives the core.
  ProgramCore(const JobConfig& config, ControlBoard& board);

  // Sets the program's one virtual worker; call for each view. Without virtual workers: no change.
  void SetPlace(const WorkerPlace& place);
  // Applies the coordinator's reply to a heartbeat. Acknowledges an order to pause at once, even
  // during a step: no step begins before the gate opens again.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  bool go() const { return orders_.go; }
  // Whether step `clock` may begin. kWait: ask again after the next reply. kDone: there is no such
  // step.
  enum class Verdict { kBegin, kWait, kDone };
  Verdict MayBegin(uint64_t clock) const;
  // Begins the step if it may. REQUIRES: called for the place's start clock, then for each next
  // one.
  Verdict TryBegin(uint64_t clock);
  // True when no step is left but pushes of other workers may still change the weights: the final
  // weights are then pulled once more (BlockClocks::AllowLastPulls).
  bool pulls_once_more() const { return pulls_newest_ && done_; }
  // Schedule in effect for the newest step.
  const ExchangeSchedule& schedule() const { return schedule_; }

  // Requests of a push and of a pull at this clock (BlockClocks). The caller fills in gradient,
  // token count and destination.
  PushRequest PushAt(uint32_t block, uint64_t clock) const;
  PullRequest PullAt(uint32_t block, uint64_t clock) const;
  // Reports that the program has made its last pulls.
  void Finish();

 private:
  const uint64_t steps_;
  const bool pulls_newest_;  // SyncMode
  ControlBoard& board_;
  std::vector<uint32_t> carried_ = {0};  // the program's one virtual worker
  ControlBoard::Orders orders_;
  StepGate gate_;
  ControlBoard::State state_;
  ExchangeSchedule schedule_;
  bool done_ = false;  // no step is left
};

}  // namespace tug

#endif  // TUG_EXCHANGE_C_API_PROGRAM_CORE_H_
