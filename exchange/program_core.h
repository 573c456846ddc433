#ifndef TUG_EXCHANGE_PROGRAM_CORE_H_
#define TUG_EXCHANGE_PROGRAM_CORE_H_

#include <cstdint>
#include <vector>

#include "exchange/control_board.h"
#include "exchange/requests.h"
#include "exchange/schedule.h"
#include "exchange/step_gate.h"
#include "exchange/worker_place.h"

namespace tug {

// The decisions of a worker that is a program with a model of its own, as a machine without I/O:
// when the program's next step may begin, what its pushes and pulls request, and what it reports.
// ExternalWorker gives it threads and connections, simulate/ virtual time.
//
// Not thread-safe; the control board is, and connects it to the heartbeats.
class ProgramCore {
 public:
  // REQUIRES: `board` outlives the core.
  ProgramCore(const JobConfig& config, ControlBoard& board);

  // The program's one virtual worker, once there is a view. Empty: none.
  void SetPlace(const WorkerPlace& place);
  // The coordinator's reply to a heartbeat. An order to pause is acknowledged at once, whatever the
  // program is doing, since no step begins before the gate opens again.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  bool go() const { return orders_.go; }
  // Whether step `clock` may begin: kWait may change with the next reply, kDone: no such step.
  enum class Verdict { kBegin, kWait, kDone };
  Verdict MayBegin(uint64_t clock) const;
  // Begins it if it may. REQUIRES: called for the place's start clock, and the next ones in turn.
  Verdict TryBegin(uint64_t clock);
  // No step is left, and the pushes of others change the weights still: the last ones are pulled
  // once more (BlockClocks::AllowLastPulls).
  bool pulls_once_more() const { return pulls_newest_ && done_; }
  // In effect for the step that began last.
  const ExchangeSchedule& schedule() const { return schedule_; }

  // The requests of a push and of a pull at this clock (BlockClocks); gradient, terms and
  // destination are the caller's.
  PushRequest PushAt(uint32_t block, uint64_t clock) const;
  PullRequest PullAt(uint32_t block, uint64_t clock) const;
  // The program has made its last pulls.
  void Finish();

 private:
  const uint64_t steps_;
  const bool pulls_newest_;  // SyncMode
  ControlBoard& board_;
  std::vector<uint32_t> carried_ = {0};  // one virtual worker
  ControlBoard::Orders orders_;
  StepGate gate_;
  ControlBoard::State state_;
  ExchangeSchedule schedule_;
  bool done_ = false;  // no step is left
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PROGRAM_CORE_H_
