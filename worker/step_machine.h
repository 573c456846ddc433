#ifndef TUG_WORKER_STEP_MACHINE_H_
#define TUG_WORKER_STEP_MACHINE_H_

// What a worker does next, as a machine without I/O: it emits computations and exchange requests in
// order, and is told when weights have arrived and computations are done. training_loop.h binds it
// to the CPU executor and the exchange client, simulate/ to virtual time.
//
// Every virtual worker that this process carries has a clock, that of its next step. A step is at
// the lowest of them, c, and is taken by those that are at it: one that was taken over from a lost
// process, or whose clock in a checkpoint is behind, catches up before the others go on.
//   1. (every `eval_interval` steps of the job, and at the end) evaluate.
//   2. Gate: begin only while c is below the final clock, and not while a pause holds.
//   3. For each virtual worker of the step, each local step, each micro-batch: forward blocks 0..N,
//      each waiting only for its own weights for clock c; backward N..0, adding to the virtual
//      worker's gradient.
//   4. In the last micro-batch, right after the backward pass of a block: push its gradient at
//      clock c. Once the last virtual worker has done so, also pull the block for the next clock.
// The next forward pass starts when block 0 has arrived, not when all have.
//
// With a window (model/block_window.h) a worker keeps the weights of a few blocks only, and the
// pulls of 4. are others: after each computation, blocks that are not in the window are dropped,
// and those that have come into it are pulled, for the clock of their next use. What the push of
// the last virtual worker leaves of no use is dropped before it.
//
// What differs by policy (proto/sync_mode.h):
//   skips_steps  Weights may come of a later version v than was asked for. As long as nothing of
//   the
//                step is pushed, it becomes v: what is here of earlier versions is pulled again.
//                (It cannot come later: only the first forward pass waits.)
//   VersionAt    Where a clock tells no version, an evaluation is due when the weights of a step
//                have come to its version, and reads those. The last one needs the weights that all
//                pushes have made: they are pulled anew, exactly.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exchange/step_gate.h"
#include "model/block_window.h"
#include "proto/sync_mode.h"
#include "worker/carried_clocks.h"
#include "worker/evaluation_schedule.h"

namespace tug {

enum class ComputePhase { kForward, kBackward, kEvaluate };

// One block's pass over one micro-batch.
struct Compute {
  ComputePhase phase = ComputePhase::kForward;
  uint64_t clock = 0;           // kEvaluate: the version
  uint32_t virtual_worker = 0;  // index among those carried, not its number
  uint32_t micro_batch = 0;
  uint32_t block = 0;
  uint32_t local_step = 0;

  friend bool operator==(const Compute&, const Compute&) = default;
};

struct StepMachineOptions {
  uint32_t blocks = 1;
  uint32_t virtual_workers = 1;  // carried by this process
  uint32_t micro_batches = 1;    // per virtual worker and local step
  uint32_t local_steps = 1;
  SyncMode mode = SyncModeOf(SyncConfig::BSP);
  uint64_t start_version = 0;
  std::vector<uint64_t> start_clocks = {};  // by carried virtual worker; empty: start_version
  uint64_t steps = ~uint64_t{0};            // train.steps (StepGate::MayBegin)
  uint64_t eval_interval = 0;               // 0 = only at the end
  EvaluationSchedule::MicroBatches eval_micro_batches = {};
  // Of as many blocks; none: all weights are kept. REQUIRES: one local step, and a mode in which
  // pushes are summed and no steps are skipped.
  std::optional<BlockWindow> window = {};
};

// Weights of a block to be let go of.
struct DropOrder {
  uint32_t block = 0;
  bool open = false;  // they are not here: nothing shall come of the pull

  friend bool operator==(const DropOrder&, const DropOrder&) = default;
};

// Effects of a finished computation, in the order they are to be carried out.
struct StepEffects {
  std::optional<uint32_t> drop;  // block, with a window
  std::optional<uint32_t> push;  // block: of the computation's virtual worker, at its clock
  std::optional<PullOrder> pull;
  bool local_step_done = false;      // all micro-batches of one
  bool virtual_worker_done = false;  // all local steps of this step
  bool step_done = false;
  bool evaluation_done = false;  // of the computation's virtual worker
};

// Not thread-safe: owned by the compute thread.
class StepMachine {
 public:
  // All blocks count as asked for at the first clock: see clock(). With a window, none do.
  explicit StepMachine(StepMachineOptions options);

  enum class Next { kCompute, kPull, kDrop, kWaitWeights, kWaitGate, kFinished };
  // What to do now. kCompute: `compute()` is it, to be followed by OnComputeDone. kPull: ask for
  // what `pull()` says, to be followed by OnPulling; nothing reads the block's weights any more.
  // kDrop: the weights of `drop()` are not wanted, to be followed by OnDropped. kWaitWeights:
  // `awaited()` must arrive. kWaitGate: the next step may not begin.
  Next next() const;
  const Compute& compute() const { return compute_; }
  const PullOrder& pull() const { return pulls_.back(); }
  DropOrder drop() const { return {drops_.back(), weights_[drops_.back()].open}; }
  // The block that the computation to come lacks: its own, or another one that it reads.
  uint32_t awaited() const;
  // The block's weights for what comes now, a step at clock() or the last evaluation: requested at
  // the beginning, or again when what is here does not suffice.
  PullOrder CurrentPull(uint32_t block) const {
    return evaluating_last_ ? clocks_.LastOrder(block) : clocks_.Order(block, clock_);
  }
  // What it is at, for people who watch. `block`: the one that it computes, or awaits.
  struct Activity {
    Next next = Next::kWaitGate;
    uint32_t block = 0;
    uint64_t clock = 0;

    friend bool operator==(const Activity&, const Activity&) = default;
  };
  Activity activity() const;
  // kEvaluate: whether this is the evaluation of the final version.
  bool evaluating_last() const { return evaluating_last_; }

  // The block's weights are here; lowest and highest version of its parts, in steps of the job
  // (StepOfVersion).
  void OnWeights(uint32_t block, uint64_t lowest, uint64_t highest);
  void OnWeights(uint32_t block, uint64_t version) { OnWeights(block, version, version); }
  void OnPulling();
  void OnDropped();
  StepEffects OnComputeDone();
  // The gate; shut until the first call. A step in progress goes on. Without a final clock, steps
  // begin freely unless paused.
  void SetGate(StepGate gate);
  // All end at that version; 0: not known.
  void SetGate(bool paused, uint64_t final_version);
  // What was skipped since this was asked last. Whatever was computed of the step in progress is
  // void then.
  std::vector<SkippedSteps> TakeSkipped();

  // Nothing of the step in progress, if there is one, has been pushed: it can be taken again.
  bool CanPutBack() const { return !step_begun_ || IsFresh(); }
  // The virtual workers carried become others, and all weights are pulled anew. A step in progress
  // is put back: what was computed of it is void. By index the clocks of their next steps, and
  // `before` their index so far, if they were carried. `gate`: theirs. REQUIRES: CanPutBack.
  void Carry(std::vector<uint64_t> clocks, std::span<const std::optional<uint32_t>> before,
             StepGate gate = {});

  // The step in progress or next; and whether one is in progress.
  uint64_t clock() const { return clock_; }
  bool in_step() const { return step_begun_; }
  // The last step begun, if any, and not put back.
  std::optional<uint64_t> begun() const { return begun_; }
  // Of the next step of a carried virtual worker.
  uint64_t next_clock(uint32_t virtual_worker) const { return clocks_.all()[virtual_worker]; }
  // The order to pause has been taken: no further step begins before the final version is known.
  bool paused() const { return clocks_.gate().paused; }

 private:
  enum class State { kEvaluation, kGate, kStep, kFinished };
  struct Weights {
    bool held = true;  // here, or asked for; always but with a window
    bool open = true;  // asked for, not here
    uint64_t asked = 0;
    bool exact = false;    // asked for so
    uint64_t clock = 0;    // if not open: that they are for
    uint64_t highest = 0;  // version
  };

  void EnterBoundary();
  void EnterGate();
  void PassGateIfOpen();
  void BeginStep();
  // The end: the last evaluation, if it is still to be made.
  void End();
  bool Fits(const Weights& weights) const;
  // The block that the computation to come reads beside its own.
  std::optional<uint32_t> AlsoRead() const;
  bool WeightsAreHere() const;
  // Nothing of a step has been pushed: it can still become another.
  bool IsFresh() const;
  void SkipIfBehind();
  void PutBackEvaluation();
  // Whatever is here and is not what is needed has to be asked for again.
  void PullMisfits();
  // With a window: what has left it is dropped, what has come into it pulled. After every change of
  // what comes next.
  void MoveWindow();
  // The window's part of that: what is wanted of a block is what this returns.
  PullOrder OrderOf(const BlockWindow::Use& use) const;
  std::span<const BlockWindow::Use> Window();
  // Puts compute_ on an evaluation that is due at `version` of the weights; false if none is.
  bool SeekDueEvaluation(uint64_t version);
  // Puts compute_ on the last evaluation's share of the first virtual worker from this one on that
  // has one.
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
  std::vector<uint32_t> takers_;  // of the step in progress
  size_t taker_ = 0;              // whose turn it is
  bool step_begun_ = false;
  std::optional<uint64_t> begun_;
  std::optional<uint64_t> begun_before_;  // that one
  Compute compute_;
  bool evaluating_last_ = false;  // the evaluation under way, or done, is that of the final version
  std::vector<Weights> weights_;  // by block
  uint64_t version_ = 0;          // of block 0, as it came last
  std::vector<PullOrder> pulls_;  // to be asked for, last first
  std::vector<uint32_t> drops_;   // blocks, before that
  std::vector<SkippedSteps> skipped_;
};

}  // namespace tug

#endif  // TUG_WORKER_STEP_MACHINE_H_
