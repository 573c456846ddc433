// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_STEP_MACHINE_H_
#define TUG_WORKER_CORE_STEP_MACHINE_H_

// Next action of a worker, as a state machine without I/O: it emits computations and exchange
// requests in order, and is notified of arrived weights and finished computations. worker_core.h
// connects it to the coordinator's orders and the exchange, lab/simulate/ to virtual time.
//
// Each virtual worker that this process runs has a clock, that of its next step. The machine takes
// the step at the lowest one, c, for the virtual workers at c: one that was taken over from a lost
// process, or whose clock in a checkpoint is behind, catches up before the others continue.
//   1. (every `eval_interval` steps of the job, and at the end) evaluate.
//   2. Gate: begin only while c is below the final clock and no pause is ordered.
//   3. For each virtual worker of the step, each local step, each micro-batch: forward blocks 0..N,
//      each waiting only for its own weights for clock c; backward N..0, adding to the virtual
//      worker's gradient.
//   4. In the last micro-batch, right after the backward pass of a block: push its gradient at
//      clock c. Once the last virtual worker has done so, also pull the block for the next clock.
// The next forward pass starts when block 0 has arrived, not when all have.
//
// With a window (model/layers/block_window.h) a worker keeps the weights of a few blocks only, and
// the pulls of 4. differ: after each computation, blocks that left the window are dropped, and
// blocks that entered it are pulled for the clock of their next use. Weights that are not used
// after the last virtual worker's push of the block are dropped before that push.
//
// Differences by policy (config/sync_mode.h):
//   skips_steps: Weights may be of a later version v than requested. While nothing of the step has
//   been pushed, it becomes step v, and weights of earlier versions are pulled again. (This cannot
//   happen later: only the first forward pass waits.)
//   VersionAt: Where a clock determines no version, an evaluation is due when the weights of a step
//   have reached its version, and reads those. The last evaluation needs the weights made by all
//   pushes: they are pulled again, exactly.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/sync_mode.h"
#include "exchange/step_gate.h"
#include "model/layers/block_window.h"
#include "worker/core/carried_clocks.h"
#include "worker/core/evaluation_schedule.h"

namespace tug {

enum class ComputePhase { kForward, kBackward, kEvaluate };

// One block's pass over one micro-batch.
struct Compute {
  ComputePhase phase = ComputePhase::kForward;
  uint64_t clock = 0;           // kEvaluate: the version
  uint32_t virtual_worker = 0;  // index among those run here, not its number
  uint32_t micro_batch = 0;
  uint32_t block = 0;
  uint32_t local_step = 0;

  friend bool operator==(const Compute&, const Compute&) = default;
};

struct StepMachineOptions {
  uint32_t blocks = 1;
  uint32_t virtual_workers = 1;  // run by this process
  uint32_t micro_batches = 1;    // per virtual worker and local step
  uint32_t local_steps = 1;
  SyncMode mode = SyncModeOf(SyncConfig::BSP);
  uint64_t start_version = 0;
  std::vector<uint64_t> start_clocks = {};  // by virtual worker; empty: start_version
  uint64_t steps = ~uint64_t{0};            // train.steps (StepGate::MayBegin)
  uint64_t eval_interval = 0;               // 0: only at the end
  EvaluationSchedule::MicroBatches eval_micro_batches = {};
  // Has `blocks` blocks; none: all weights are kept. REQUIRES: one local step, and a mode in which
  // pushes are summed and no steps are skipped.
  std::optional<BlockWindow> window = {};
};

// Order to release the weights of a block.
struct DropOrder {
  uint32_t block = 0;
  bool open = false;  // not arrived: its pull is to be cancelled

  friend bool operator==(const DropOrder&, const DropOrder&) = default;
};

// Effects of a finished computation, in the order in which to carry them out.
struct StepEffects {
  std::optional<uint32_t> drop;  // block; only with a window
  std::optional<uint32_t> push;  // block to push for the computation's virtual worker, at its clock
  std::optional<PullOrder> pull;
  bool local_step_done = false;      // all its micro-batches
  bool virtual_worker_done = false;  // all local steps of this step
  bool step_done = false;
  bool evaluation_done = false;  // of the computation's virtual worker
};

// Not thread-safe: owned by the compute thread.
class StepMachine {
 public:
  // All blocks count as requested for the first clock: see clock(). With a window, none do.
  explicit StepMachine(StepMachineOptions options);

  enum class Next { kCompute, kPull, kDrop, kWaitWeights, kWaitGate, kFinished };
  // Next action. kCompute: run `compute()`, then call OnComputeDone. kPull: request `pull()`, then
  // call OnPulling; nothing reads the block's previous weights any longer. kDrop: release the
  // weights of `drop()`, then call OnDropped. kWaitWeights: `awaited()` must arrive. kWaitGate: the
  // next step may not begin.
  Next next() const;
  const Compute& compute() const { return compute_; }
  const PullOrder& pull() const { return pulls_.back(); }
  DropOrder drop() const { return {drops_.back(), weights_[drops_.back()].open}; }
  // Block that the next computation misses: its own, or another one that it reads.
  uint32_t awaited() const;
  // Pull of the block's weights for the step at clock() or the last evaluation: requested at the
  // beginning, or again if the present weights do not fit.
  PullOrder CurrentPull(uint32_t block) const {
    return evaluating_last_ ? clocks_.LastOrder(block) : clocks_.Order(block, clock_);
  }
  // Current activity, for monitoring. `block`: computed or awaited; else 0.
  struct Activity {
    Next next = Next::kWaitGate;
    uint32_t block = 0;
    uint64_t clock = 0;

    friend bool operator==(const Activity&, const Activity&) = default;
  };
  Activity activity() const;
  // kEvaluate: whether this is the evaluation of the final version.
  bool evaluating_last() const { return evaluating_last_; }

  // The block's weights have arrived. `lowest`, `highest`: versions of its parts, in steps of the
  // job (StepOfVersion).
  void OnWeights(uint32_t block, uint64_t lowest, uint64_t highest);
  void OnWeights(uint32_t block, uint64_t version) { OnWeights(block, version, version); }
  void OnPulling();
  void OnDropped();
  StepEffects OnComputeDone();
  // Sets the gate, which is closed until the first call. A step in progress continues. Without a
  // final clock, steps begin freely unless paused.
  void SetGate(StepGate gate);
  // The same gate for all virtual workers: they end at `final_version`; 0: unknown.
  void SetGate(bool paused, uint64_t final_version);
  // Moves out the steps skipped since the last call. If there are any, the computations of the step
  // in progress are void.
  std::vector<SkippedSteps> TakeSkipped();

  // Whether nothing of the step in progress, if any, has been pushed: it can be repeated.
  bool CanPutBack() const { return !step_begun_ || IsFresh(); }
  // Replaces the virtual workers; all weights are pulled again. A step in progress is put back: its
  // computations are void. By index: `clocks` of their next steps, and `before`, their previous
  // index if they were run here. `gate`: of the new ones. REQUIRES: CanPutBack.
  void Carry(std::vector<uint64_t> clocks, std::span<const std::optional<uint32_t>> before,
             StepGate gate = {});

  // Clock of the step in progress or of the next one; and whether one is in progress.
  uint64_t clock() const { return clock_; }
  bool in_step() const { return step_begun_; }
  // Last step that was begun and not put back, if any.
  std::optional<uint64_t> begun() const { return begun_; }
  // Clock of a virtual worker's next step.
  uint64_t next_clock(uint32_t virtual_worker) const { return clocks_.all()[virtual_worker]; }
  // Whether a virtual worker has no step at `clock`, since the job ends before it.
  bool IsPastEnd(uint32_t virtual_worker, uint64_t clock) const {
    return clocks_.gate().IsPastEnd(virtual_worker, clock);
  }
  // Whether a pause is in effect: no further step begins before the final version is known.
  bool paused() const { return clocks_.gate().paused; }

 private:
  enum class State { kEvaluation, kGate, kStep, kFinished };
  struct Weights {
    bool held = true;  // present or requested; always true without a window
    bool open = true;  // requested, not arrived
    uint64_t asked = 0;
    bool exact = false;    // requested as exact
    uint64_t clock = 0;    // if not open: the clock they are for
    uint64_t highest = 0;  // version
  };

  void EnterBoundary();
  void EnterGate();
  void PassGateIfOpen();
  void BeginStep();
  // Begins the last evaluation if it was not made, else finishes.
  void End();
  bool Fits(const Weights& weights) const;
  // Another block that the next computation reads.
  std::optional<uint32_t> AlsoRead() const;
  bool WeightsAreHere() const;
  // Whether nothing of the step has been pushed, so that it can still become another one.
  bool IsFresh() const;
  void SkipIfBehind();
  void PutBackEvaluation();
  // Orders pulls of all weights that are present and do not fit.
  void PullMisfits();
  // With a window: drops the blocks that left it and pulls those that entered. Called after every
  // change of the next computation.
  void MoveWindow();
  // Pull for a use of the window.
  PullOrder OrderOf(const BlockWindow::Use& use) const;
  std::span<const BlockWindow::Use> Window();
  // Sets compute_ to an evaluation due at weights `version`; false if there is none.
  bool SeekDueEvaluation(uint64_t version);
  // Sets compute_ to the last evaluation of the first virtual worker from this one on that has
  // samples for it; false if there is none.
  bool SeekLastEvaluation(uint32_t virtual_worker);
  StepEffects AfterCompute();
  StepEffects AfterEvaluate();
  StepEffects AfterForward();
  StepEffects AfterBackward();

  const StepMachineOptions options_;
  std::optional<BlockWindow> window_;
  State state_ = State::kGate;
  uint64_t clock_ = 0;
  CarriedClocks clocks_;
  EvaluationSchedule evaluations_;
  std::vector<uint32_t> takers_;  // indices that take the step in progress
  size_t taker_ = 0;              // position in takers_ of the current one
  bool step_begun_ = false;
  std::optional<uint64_t> begun_;
  std::optional<uint64_t> begun_before_;  // value of begun_ before the step in progress
  Compute compute_;
  bool evaluating_last_ = false;  // the current or last evaluation is that of the final version
  std::vector<Weights> weights_;  // by block
  uint64_t version_ = 0;          // of block 0, as it arrived last
  std::vector<PullOrder> pulls_;  // pending, last first
  std::vector<uint32_t> drops_;   // pending, before the pulls
  std::vector<SkippedSteps> skipped_;
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_STEP_MACHINE_H_
