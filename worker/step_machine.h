#ifndef TUG_WORKER_STEP_MACHINE_H_
#define TUG_WORKER_STEP_MACHINE_H_

// What a worker does next, as a machine without I/O: it emits computations and exchange requests in
// order, and is told when weights have arrived and computations are done. training_loop.h binds it
// to the CPU executor and the exchange client, simulate/ to virtual time.
//
// One step at clock c, for the virtual workers that this process carries:
//   1. (every `eval_interval` steps, and at the end) evaluate on the weights of version c.
//   2. Gate: begin only while c < final version, and not while a pause holds.
//   3. For each virtual worker, each micro-batch: forward blocks 0..N, each waiting only for its
//      own weights at version c; backward N..0, adding to the virtual worker's gradient.
//   4. In the last micro-batch, right after the backward pass of a block: push its gradient at
//      clock c. Once the last virtual worker has done so, also pull the block at version c + 1.
// The next forward pass starts when block 0 has arrived, not when all have.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tug {

enum class ComputePhase { kForward, kBackward, kEvaluate };

// One block's pass over one micro-batch.
struct Compute {
  ComputePhase phase = ComputePhase::kForward;
  uint64_t clock = 0;           // kEvaluate: the version
  uint32_t virtual_worker = 0;  // index among those carried, not its number
  uint32_t micro_batch = 0;
  uint32_t block = 0;

  friend bool operator==(const Compute&, const Compute&) = default;
};

struct StepMachineOptions {
  uint32_t blocks = 1;
  uint32_t virtual_workers = 1;  // carried by this process
  uint32_t micro_batches = 1;    // per virtual worker and step
  uint64_t start_version = 0;
  uint64_t eval_interval = 0;  // 0 = only at the end
  // Micro-batches of an evaluation, by carried virtual worker and whether it is the last one.
  std::function<uint32_t(uint32_t virtual_worker, bool last)> eval_micro_batches;
};

// Effects of a finished computation, in the order they are to be carried out.
struct StepEffects {
  std::optional<uint32_t> push;      // block: of the computation's virtual worker, at its clock
  std::optional<uint32_t> pull;      // block: at clock + 1
  bool virtual_worker_done = false;  // all micro-batches of this step
  bool step_done = false;
  bool evaluation_done = false;  // of the computation's virtual worker
};

// Not thread-safe: owned by the compute thread.
class StepMachine {
 public:
  explicit StepMachine(StepMachineOptions options);

  enum class Next { kCompute, kWaitWeights, kWaitGate, kFinished };
  // What to do now. kCompute: `compute()` is it, to be followed by OnComputeDone. kWaitWeights:
  // `compute().block` must arrive. kWaitGate: the next step may not begin.
  Next next() const;
  const Compute& compute() const { return compute_; }
  // kEvaluate: whether this is the evaluation of the final version.
  bool evaluating_last() const { return evaluating_last_; }

  void OnWeights(uint32_t block, uint64_t version);
  StepEffects OnComputeDone();
  // The gate; shut until the first call. A step in progress goes on. `final_version` 0 = not known:
  // steps begin freely unless paused.
  void SetGate(bool paused, uint64_t final_version);

  // The step in progress or next; and whether one is in progress.
  uint64_t clock() const { return clock_; }
  bool in_step() const { return state_ == State::kStep; }
  // The order to pause has been taken: no further step begins before the final version is known.
  bool paused() const { return paused_; }

 private:
  enum class State { kEvaluation, kGate, kStep, kFinished };

  void EnterBoundary();
  void EnterGate();
  void PassGateIfOpen();
  bool IsLastVersion() const { return final_version_ > 0 && clock_ >= final_version_; }
  uint32_t EvalMicroBatches(uint32_t virtual_worker) const;
  // Puts compute_ on the first evaluation micro-batch from `virtual_worker` on; false if there is
  // none.
  bool SeekEvaluation(uint32_t virtual_worker);
  StepEffects AfterEvaluate();
  StepEffects AfterForward();
  StepEffects AfterBackward();

  const StepMachineOptions options_;
  State state_ = State::kGate;
  uint64_t clock_ = 0;
  Compute compute_;
  bool paused_ = true;
  uint64_t final_version_ = 0;
  bool evaluating_last_ = false;  // the evaluation under way, or done, is that of the final version
  std::vector<std::optional<uint64_t>> weights_;  // newest version here, by block
};

}  // namespace tug

#endif  // TUG_WORKER_STEP_MACHINE_H_
