#ifndef TUG_WORKER_WORKER_CORE_H_
#define TUG_WORKER_WORKER_CORE_H_

// A worker's decisions as a machine without I/O: which step it takes and for which virtual workers,
// what it pulls and pushes and when, which residuals it saves, and what it reports. It binds the
// step machine (step_machine.h) to the coordinator's orders and to the exchange. training_loop.h
// gives it a model, memory, an exchange client and files; simulate/ gives it a fake computation, a
// fake disk and virtual time.
//
//   while (true) {
//     core.TakeOrders();
//     switch (core.next()) {
//       kAct:          core.Act();
//       kCompute:      core.BeginCompute(); ...; core.Finish(core.OnComputeDone());
//       kAwaitWeights: wait until core.awaited() is pulled; core.OnWeights(...);
//       kAwaitOrders:  wait until the control board has other orders
//       kFinished:     core.OnFinished(); return;
//     }
//   }
//
// The life of a core is a timeline of the job. The control board connects it to the heartbeats.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "exchange/control_board.h"
#include "exchange/open_requests.h"
#include "exchange/requests.h"
#include "exchange/schedule.h"
#include "exchange/worker_place.h"
#include "model/block_window.h"
#include "model/model.h"
#include "proto/sync_mode.h"
#include "worker/due_residuals.h"
#include "worker/step_machine.h"

namespace tug {

// An order to save the residuals of a virtual worker for checkpoints.
struct ResidualOrder {
  uint32_t virtual_worker = 0;
  // Ascending. The residuals belong to the newest; the checkpoints before it get none.
  std::vector<uint64_t> versions;
  uint32_t view = 0;  // names the file (ResidualPlace)
};

// A gradient to be pushed.
struct PushOrder {
  uint32_t block = 0;
  uint64_t terms = 0;     // of the sum that it is
  bool last_use = false;  // no computation of the step reads the block's weights any more
};

// What a core makes its worker do. Errors end the worker, and are returned to whoever called the
// core.
class WorkerActions {
 public:
  virtual ~WorkerActions() = default;

  // Pushes and pulls are cut by this schedule from now on.
  virtual void SetSchedule(const ExchangeSchedule& schedule) = 0;
  // Requests the weights of a block. No computation reads the ones of before any more. `request`
  // lacks what only the worker knows: the destination and the rows. `whole`: all elements.
  virtual void Pull(PullRequest request, bool whole) = 0;
  // The weights of a block are not needed any more; `order.open`: neither is its open pull.
  virtual absl::Status Drop(const DropOrder& order) = 0;
  // Pushes a gradient of the computation's virtual worker.
  virtual void Push(const Compute& compute, const PushOrder& order) = 0;
  // The worker carries these virtual workers from now on. `before`: by index, the index so far, if
  // it was carried.
  virtual void Carry(const std::vector<uint32_t>& virtual_workers,
                     const std::vector<std::optional<uint32_t>>& before) = 0;
  virtual absl::Status SaveResiduals(const ResidualOrder& order) = 0;
  // Times and traffic of the step that ended, of so many tokens; the core adds the rest.
  virtual StepReport EndStep(uint64_t clock, uint64_t tokens) = 0;
  // Sum of the squared residuals of a virtual worker.
  virtual double ResidualSquares(uint32_t virtual_worker) const = 0;
};

// The window of a job's workers; none: they keep all weights. `tied`: the block, if any, whose
// weights the head reads too.
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
    uint32_t view = 0;  // that the worker was built in
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
  // The newest orders and, as soon as nothing of a step in progress has been pushed, the newest
  // place take effect; then the state is published. Once a pause is published, no step begins.
  // Errors: what the board was cancelled with.
  absl::Status TakeOrders();
  // Carries out one pull or drop.
  absl::Status Act();
  const Compute& compute() const { return machine_.compute(); }
  bool evaluating_last() const { return machine_.evaluating_last(); }
  uint32_t awaited() const { return machine_.awaited(); }
  // The weights of `block` that were pulled last are in.
  absl::Status OnWeights(uint32_t block, const OpenRequests::Versions& versions);
  // Pulls the weights of the step in progress once more, all elements.
  void PullWhole(uint32_t block);
  // Saves the last residuals, and publishes the end.
  absl::Status OnFinished();

  // compute() begins: with the first computation of a step, the newest schedule takes effect.
  void BeginCompute();
  // A computation whose effects are pending.
  struct Computed {
    Compute compute;
    StepEffects effects;
    bool evaluated_last = false;
  };
  // compute() is done, or queued on a device: the next one is compute() from now on.
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
  // Whether the awaited weights are the first ones of the timeline, which lanes have from the
  // start: later ones may wait for a straggler, and those of a worker whose clock in the
  // checkpoint is ahead wait for others.
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
  absl::Status TakePlace();
  absl::Status PullFirstWeights();
  void Pull(const PullOrder& order, bool whole);
  // Whether an evaluation at `version` is foreseen.
  bool EvaluationDue(uint64_t version) const;
  void PushHeld(const Compute& compute);
  uint64_t TermsOf(const Share& share) const;
  absl::Status SaveResiduals(uint32_t index, std::vector<uint64_t> due);
  // The virtual worker has made its pushes of all clocks before this one.
  absl::Status SaveResidualsAt(uint32_t index, uint64_t clock);
  void Publish(ControlBoard::State state);
  void ReportStep(uint64_t clock);
  void ReportEval(const Computed& computed);
  // Reports steps that are not taken; what was computed of the one in progress is void.
  absl::Status ReportSkipped();
  void VoidShares();

  struct StepShare {
    uint32_t virtual_worker = 0;
    Share share;
  };
  // A push that waits for the end of the backward pass.
  struct HeldPush {
    uint32_t block = 0;
    std::optional<PullOrder> pull;
  };

  const Options options_;
  WorkerActions& actions_;
  ControlBoard& board_;
  const SyncMode mode_;
  const bool holds_pushes_;                // PushPlan::worker_holds
  std::vector<uint32_t> virtual_workers_;  // carried
  StepMachine machine_;
  ControlBoard::Orders orders_;  // newest taken
  uint32_t view_ = 0;            // of the place taken; 0: the one that the worker began with
  bool running_ = false;         // the first weights have been pulled
  ExchangeSchedule schedule_;    // in effect; number 0: the job's own
  Share share_;
  std::vector<StepShare> step_shares_;  // of virtual workers that have finished the step
  bool stepped_ = false;                // a step has been taken
  std::vector<HeldPush> held_;
  DueResiduals due_residuals_;
  std::map<uint32_t, uint32_t> came_in_view_;  // by virtual worker that others carried before
};

}  // namespace tug

#endif  // TUG_WORKER_WORKER_CORE_H_
