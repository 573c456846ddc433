// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_WORKER_CORE_H_
#define TUG_WORKER_CORE_WORKER_CORE_H_

// A worker's decisions as a state machine without I/O: which step it takes for which virtual
// workers, what it pulls and pushes and when, which residuals it saves, and what it reports.
// Connects the step machine (step_machine.h) to the coordinator's orders and the exchange.
// training_loop.h adds a model, memory, an exchange client and files; lab/simulate/ adds a fake
// computation, a fake disk and virtual time.
//
//   while (true) {
//     core.RefreshOrders();
//     switch (core.next()) {
//       kAct:          core.Act();
//       kCompute:      core.BeginCompute(); ...; core.Finish(core.OnComputeDone());
//       kAwaitWeights: wait until core.awaited() is pulled; core.OnWeights(...);
//       kAwaitOrders:  wait until the control board has other orders
//       kFinished:     core.OnFinished(); return;
//     }
//   }
//
// A core lives for one timeline of the job. The control board connects it to the heartbeats.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "blocks/requests.h"
#include "blocks/schedule.h"
#include "blocks/worker_place.h"
#include "config/sync_mode.h"
#include "control/control_board.h"
#include "exchange/open_requests.h"
#include "model/layers/block_window.h"
#include "model/model.h"
#include "worker/core/due_residuals.h"
#include "worker/core/step_machine.h"

namespace tug {

// An order to save the residuals of a virtual worker for checkpoints.
struct ResidualOrder {
  uint32_t virtual_worker = 0;
  // Ascending. The residuals belong to the newest; the checkpoints before it get none.
  std::vector<uint64_t> versions;
  uint32_t view = 0;  // part of the file's name (ResidualPlace)
};

// A gradient to push.
struct PushOrder {
  uint32_t block = 0;
  uint64_t terms = 0;     // number of terms in the sum
  bool last_use = false;  // no later computation of the step reads the block's weights
};

// Actions that a core asks of its worker. Errors end the worker and are returned to the caller of
// the core.
class WorkerActions {
 public:
  virtual ~WorkerActions() = default;

  // Partitions later pushes and pulls by this schedule.
  virtual void SetSchedule(const ExchangeSchedule& schedule) = 0;
  // Requests the weights of a block; no computation reads its previous ones any longer. The worker
  // sets the destination and the rows of `request`. `whole`: all elements.
  virtual void Pull(PullRequest request, bool whole) = 0;
  // Releases the weights of a block; `order.open`: cancels its open pull too.
  virtual absl::Status Drop(const DropOrder& order) = 0;
  // Pushes a gradient of the computation's virtual worker.
  virtual void Push(const Compute& compute, const PushOrder& order) = 0;
  // The virtual workers that this worker runs from now on. `before`: by index, the previous index;
  // none if it was not run here.
  virtual void Carry(const std::vector<uint32_t>& virtual_workers,
                     const std::vector<std::optional<uint32_t>>& before) = 0;
  virtual absl::Status SaveResiduals(const ResidualOrder& order) = 0;
  // Times and traffic of the step that ended, with its tokens; the core adds the other fields.
  virtual StepReport EndStep(uint64_t clock, uint64_t tokens) = 0;
  // Sum of the squared residuals of a virtual worker.
  virtual double ResidualSquares(uint32_t virtual_worker) const = 0;
};

// Window of a job's workers; none: they keep all weights. `tied`: the block, if any, whose weights
// the head reads too.
std::optional<BlockWindow> WindowOf(const JobConfig& config, uint32_t blocks,
                                    std::optional<uint32_t> tied);

// Not thread-safe: owned by the compute thread.
class WorkerCore {
 public:
  struct Options {
    JobConfig config;  // all fields filled
    std::vector<uint32_t> virtual_workers;
    std::vector<uint64_t> start_clocks;  // by virtual worker; empty: start_version
    uint64_t start_version = 0;
    uint32_t view = 0;  // in which the worker was built
    uint32_t blocks = 1;
    uint32_t micro_batches = 1;         // per virtual worker and local step
    std::optional<BlockWindow> window;  // none: all weights are kept
    // Micro-batches of an evaluation, by virtual worker and whether it is the last one.
    std::function<uint32_t(uint32_t virtual_worker, bool last)> eval_micro_batches;
    bool saves_residuals = false;
  };
  // REQUIRES: `actions` and `board` outlive the core.
  WorkerCore(Options options, WorkerActions& actions, ControlBoard& board);

  enum class Next { kAct, kCompute, kAwaitWeights, kAwaitOrders, kFinished };
  Next next() const;
  // Applies the newest orders and, unless a step in progress has pushed something, the newest
  // assignment; then publishes the state. After a published pause no step begins. Errors: the
  // board's cancel reason.
  absl::Status RefreshOrders();
  // Carries out one pull or drop.
  absl::Status Act();
  const Compute& compute() const { return machine_.compute(); }
  bool evaluating_last() const { return machine_.evaluating_last(); }
  uint32_t awaited() const { return machine_.awaited(); }
  // The last pull of `block` has completed.
  absl::Status OnWeights(uint32_t block, const OpenRequests::Versions& versions);
  // Pulls the weights of the step in progress again, all elements.
  void PullWhole(uint32_t block);
  // Saves the last residuals, and publishes the end.
  absl::Status OnFinished();

  // Begins compute(); the first computation of a step applies the newest schedule.
  void BeginCompute();
  // A computation whose effects are pending.
  struct Computed {
    Compute compute;
    StepEffects effects;
    bool evaluated_last = false;
  };
  // compute() is done, or queued on a device; compute() then returns the next one.
  Computed OnComputeDone();
  // Carries out the effects of a computation: drops, pushes, pulls, residuals, reports.
  absl::Status Finish(const Computed& computed);

  // Loss and tokens of the virtual worker's step or evaluation in progress.
  struct Share {
    LossSums sums;
    uint64_t tokens = 0;  // without padding

    void Add(const LossSums& more);
  };
  Share& share() { return share_; }

  // Whether a worker without memory for another gradient waits for a push that lanes have no memory
  // for (lane_room.h).
  bool WaitsForRoomOnLanes() const;
  // Whether the awaited weights are the timeline's first, which lanes have from the start. Later
  // ones may wait for a straggler; those of a worker whose clock in the checkpoint is ahead wait
  // for other workers.
  bool AwaitsFirstWeights() const;

  const SyncMode& mode() const { return mode_; }
  const ControlBoard::Orders& orders() const { return orders_; }
  const std::vector<uint32_t>& virtual_workers() const { return virtual_workers_; }
  uint32_t NumberOf(const Compute& compute) const {
    return virtual_workers_[compute.virtual_worker];
  }
  uint32_t view() const { return view_; }
  uint64_t clock() const { return machine_.clock(); }
  StepMachine::Activity activity() const { return machine_.activity(); }

 private:
  StepMachineOptions MachineOptions() const;
  absl::Status AdoptAssignment();
  absl::Status PullFirstWeights();
  void Pull(const PullOrder& order, bool whole);
  // Whether an evaluation at `version` is expected.
  bool EvaluationDue(uint64_t version) const;
  void PushHeld(const Compute& compute);
  uint64_t TermsOf(const Share& share) const;
  absl::Status SaveResiduals(uint32_t index, std::vector<uint64_t> due);
  // Saves residuals that are due after the pushes of all clocks before `clock`.
  absl::Status SaveResidualsAt(uint32_t index, uint64_t clock);
  // Saves the residuals of virtual workers that have made their last push.
  absl::Status SaveLastResiduals();
  void Publish(ControlBoard::State state);
  void ReportStep(uint64_t clock);
  void ReportEval(const Computed& computed);
  // Reports skipped steps, and discards what was computed of the one in progress.
  absl::Status ReportSkipped();
  void VoidShares();

  struct StepShare {
    uint32_t virtual_worker = 0;
    Share share;
  };
  // A push held until the end of the backward pass.
  struct HeldPush {
    uint32_t block = 0;
    std::optional<PullOrder> pull;
  };

  const Options options_;
  WorkerActions& actions_;
  ControlBoard& board_;
  const SyncMode mode_;
  const bool holds_pushes_;                // PushPlan::worker_holds
  std::vector<uint32_t> virtual_workers_;  // run by this worker
  StepMachine machine_;
  ControlBoard::Orders orders_;  // newest applied
  uint32_t view_ = 0;            // of the assignment in effect; 0: the initial one
  bool running_ = false;         // the first weights have been pulled
  ExchangeSchedule schedule_;    // in effect; number 0: the job's own
  Share share_;
  std::vector<StepShare> step_shares_;  // of virtual workers that have finished the step
  bool stepped_ = false;                // a step has been taken
  std::vector<HeldPush> held_;
  DueResiduals due_residuals_;
  std::map<uint32_t, uint32_t> came_in_view_;  // by virtual worker taken over from others: the view
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_WORKER_CORE_H_
