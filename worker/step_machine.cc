#include "worker/step_machine.h"

#include <utility>

#include "base/check.h"

namespace tug {

StepMachine::StepMachine(StepMachineOptions options)
    : options_(std::move(options)), clock_(options_.start_version), weights_(options_.blocks) {
  TUG_CHECK(options_.blocks > 0 && options_.virtual_workers > 0 && options_.micro_batches > 0);
  EnterGate();
}

StepMachine::Next StepMachine::next() const {
  switch (state_) {
    case State::kFinished:
      return Next::kFinished;
    case State::kGate:
      return Next::kWaitGate;
    case State::kEvaluation:
    case State::kStep:
      return weights_[compute_.block] == clock_ ? Next::kCompute : Next::kWaitWeights;
  }
  TUG_CHECK(false);
  return Next::kFinished;
}

void StepMachine::OnWeights(uint32_t block, uint64_t version) { weights_[block] = version; }

void StepMachine::SetGate(bool paused, uint64_t final_version) {
  paused_ = paused;
  final_version_ = final_version;
  if (state_ == State::kGate) PassGateIfOpen();
}

uint32_t StepMachine::EvalMicroBatches(uint32_t virtual_worker) const {
  return options_.eval_micro_batches ? options_.eval_micro_batches(virtual_worker, evaluating_last_)
                                     : 0;
}

bool StepMachine::SeekEvaluation(uint32_t virtual_worker) {
  for (uint32_t v = virtual_worker; v < options_.virtual_workers; ++v) {
    if (EvalMicroBatches(v) == 0) continue;
    compute_ = {ComputePhase::kEvaluate, clock_, v, 0, 0};
    return true;
  }
  return false;
}

// Between two steps: the evaluation that is due, then the gate.
void StepMachine::EnterBoundary() {
  const bool due = options_.eval_interval > 0 && clock_ % options_.eval_interval == 0 &&
                   !IsLastVersion();  // the last one is entered by the gate
  evaluating_last_ = false;
  if (due && SeekEvaluation(0)) {
    state_ = State::kEvaluation;
    return;
  }
  EnterGate();
}

void StepMachine::EnterGate() {
  state_ = State::kGate;
  PassGateIfOpen();
}

void StepMachine::PassGateIfOpen() {
  if (IsLastVersion()) {
    const bool evaluated = std::exchange(evaluating_last_, true);
    state_ = !evaluated && SeekEvaluation(0) ? State::kEvaluation : State::kFinished;
    return;
  }
  if (paused_ && final_version_ == 0) return;
  state_ = State::kStep;
  compute_ = {ComputePhase::kForward, clock_, 0, 0, 0};
}

StepEffects StepMachine::OnComputeDone() {
  TUG_CHECK(next() == Next::kCompute);
  switch (compute_.phase) {
    case ComputePhase::kEvaluate:
      return AfterEvaluate();
    case ComputePhase::kForward:
      return AfterForward();
    case ComputePhase::kBackward:
      return AfterBackward();
  }
  return {};
}

StepEffects StepMachine::AfterEvaluate() {
  if (++compute_.block < options_.blocks) return {};
  compute_.block = 0;
  if (++compute_.micro_batch < EvalMicroBatches(compute_.virtual_worker)) return {};
  StepEffects effects;
  effects.evaluation_done = true;
  if (!SeekEvaluation(compute_.virtual_worker + 1)) EnterGate();
  return effects;
}

StepEffects StepMachine::AfterForward() {
  if (compute_.block + 1 < options_.blocks) {
    ++compute_.block;
  } else {
    compute_.phase = ComputePhase::kBackward;  // the last block's backward pass follows at once
  }
  return {};
}

StepEffects StepMachine::AfterBackward() {
  StepEffects effects;
  const bool last_micro_batch = compute_.micro_batch + 1 == options_.micro_batches;
  const bool last_virtual_worker = compute_.virtual_worker + 1 == options_.virtual_workers;
  if (last_micro_batch) effects.push = compute_.block;
  if (last_micro_batch && last_virtual_worker) effects.pull = compute_.block;
  if (compute_.block > 0) {
    --compute_.block;
    return effects;
  }
  compute_.phase = ComputePhase::kForward;
  if (!last_micro_batch) {
    ++compute_.micro_batch;
    return effects;
  }
  effects.virtual_worker_done = true;
  compute_.micro_batch = 0;
  if (!last_virtual_worker) {
    ++compute_.virtual_worker;
    return effects;
  }
  effects.step_done = true;
  ++clock_;
  EnterBoundary();
  return effects;
}

}  // namespace tug
