// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_CONTROL_BOARD_H_
#define TUG_CONTROL_CONTROL_BOARD_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "blocks/schedule.h"
#include "blocks/worker_place.h"
#include "proto/control.pb.h"

namespace tug {

// Exchange between a worker's compute thread and its heartbeat thread: orders in one direction,
// state and reports in the other. Thread-safe.
class ControlBoard {
 public:
  struct Orders {
    bool go = false;
    bool pause = false;
    uint64_t final_version = 0;  // 0 = not known
    // By virtual worker of the job, for policies where each ends at its own clock; empty = not
    // known.
    std::vector<uint64_t> final_clocks = {};
    ExchangeSchedule schedule = {};  // for steps to begin
    uint32_t view = 0;               // of the newest place(); 0: the view the worker started with
    friend bool operator==(const Orders&, const Orders&) = default;
  };
  struct State {
    bool started = false;
    uint64_t clock = 0;  // last step begun; valid if started
    bool pausing = false;
    bool finished = false;
    uint32_t schedule = 0;  // number of the schedule in effect
    uint32_t view = 0;      // view of the assignment in effect
  };

  // Orders in a reply; partition_bytes is limited to half of kMaxPayloadBytes. `known`: the newest
  // schedule so far, kept if the reply has none or an older one, so that a late reply reverts
  // nothing.
  static Orders OrdersOf(const HeartbeatReply& reply, const ExchangeSchedule& known);

  // For the heartbeat thread.
  void SetOrders(const Orders& orders);
  // Assignment of the worker in a later view of the same timeline. Until the worker has adopted it
  // (State::view), it is reported neither pausing nor finished.
  void SetPlace(uint32_t view, WorkerPlace place);
  // Adds the state, and the reports not yet confirmed (at most 4096 steps); they are repeated until
  // ConfirmReports. `pausing` and `finished` are set only in a heartbeat that contains the last
  // report.
  void AddTo(HeartbeatRequest& beat) const;
  void ConfirmReports(int steps, int evals);
  // Handles an acknowledged heartbeat: confirms its reports and sets the reply's orders.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  // Ends all waits. The first reason is kept.
  void Cancel(absl::Status reason);

  // For the compute thread.
  Orders orders() const;
  // Updates `known`; returns whether it changed. Does not allocate if it did not.
  bool RefreshOrders(Orders& known) const;
  WorkerPlace place() const;
  // Blocks until the orders differ from `known`, or Cancel.
  absl::Status WaitForOrdersOtherThan(const Orders& known);
  void SetState(const State& state);
  State state() const;
  void AddStep(StepReport report);
  void AddEval(EvalReport report);
  absl::Status cancelled() const;
  // Blocks for `duration`, or until Cancel.
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

#endif  // TUG_CONTROL_CONTROL_BOARD_H_
