#ifndef TUG_EXCHANGE_CONTROL_BOARD_H_
#define TUG_EXCHANGE_CONTROL_BOARD_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exchange/schedule.h"
#include "exchange/worker_place.h"
#include "proto/control.pb.h"

namespace tug {

// Where a worker's compute thread and its heartbeat meet: orders one way, state and reports the
// other. Thread-safe.
class ControlBoard {
 public:
  struct Orders {
    bool go = false;
    bool pause = false;
    uint64_t final_version = 0;  // 0 = not known
    // By virtual worker of the job, where they end at clocks of their own; empty = not known.
    std::vector<uint64_t> final_clocks = {};
    ExchangeSchedule schedule = {};  // to begin steps by
    uint32_t view = 0;               // of the newest place(); 0: that which the worker began with
    friend bool operator==(const Orders&, const Orders&) = default;
  };
  struct State {
    bool started = false;
    uint64_t clock = 0;  // last step begun, if started
    bool pausing = false;
    bool finished = false;
    uint32_t schedule = 0;  // number of that in effect
    uint32_t view = 0;      // of the place that was taken
  };

  // What a reply orders; partitions at most half as large as a payload may be. The schedule stays
  // `known`, the newest so far, if the reply has none or an older one: a late reply takes nothing
  // back.
  static Orders OrdersOf(const HeartbeatReply& reply, const ExchangeSchedule& known);

  // Heartbeat side.
  void SetOrders(const Orders& orders);
  // What the worker has in a later view of the same timeline. As long as it has not been taken
  // (State::view), the worker is reported neither pausing nor finished.
  void SetPlace(uint32_t view, WorkerPlace place);
  // State, and what has been reported since it was last confirmed: the same again until
  // ConfirmReports is told how much arrived. `pausing` and `finished` are set only on a beat that
  // carries the last report.
  void AddTo(HeartbeatRequest& beat) const;
  void ConfirmReports(int steps, int evals);
  // A heartbeat was answered: its reports have arrived, and the reply's orders hold.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  // Ends all waits.
  void Cancel(absl::Status reason);

  // Compute side.
  Orders orders() const;
  // Brings `known` up to date; whether it was not. Allocates nothing otherwise.
  bool TakeOrders(Orders& known) const;
  WorkerPlace place() const;
  // Blocks until the orders are not `known` any more, or Cancel.
  absl::Status WaitForOrdersOtherThan(const Orders& known);
  void SetState(const State& state);
  State state() const;
  void AddStep(StepReport report);
  void AddEval(EvalReport report);
  absl::Status cancelled() const;
  // Blocks for so long, or until Cancel.
  absl::Status Sleep(absl::Duration duration);

 private:
  mutable absl::Mutex mutex_;
  Orders orders_ ABSL_GUARDED_BY(mutex_);
  WorkerPlace place_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_);
  std::vector<StepReport> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<EvalReport> evals_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_EXCHANGE_CONTROL_BOARD_H_
