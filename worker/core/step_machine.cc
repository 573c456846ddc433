// SPDX-License-Identifier: Apache-2.0
#include "worker/core/step_machine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

std::vector<uint64_t> StartClocks(const StepMachineOptions& options) {
  if (!options.start_clocks.empty()) return options.start_clocks;
  return std::vector<uint64_t>(options.virtual_workers, options.start_version);
}

}  // namespace

StepMachine::StepMachine(StepMachineOptions options)
    : options_(std::move(options)),
      window_(options_.window),
      clocks_(options_.mode, options_.steps, StartClocks(options_)),
      evaluations_(options_.eval_interval, options_.mode, options_.eval_micro_batches),
      weights_(options_.blocks) {
  TUG_CHECK(options_.blocks > 0 && options_.virtual_workers > 0 && options_.micro_batches > 0 &&
            options_.local_steps > 0);
  TUG_CHECK_EQ(clocks_.all().size(), options_.virtual_workers);
  evaluations_.Begin(clocks_.all(), options_.start_version);
  clock_ = clocks_.StepClock();
  for (Weights& weights : weights_) {
    weights.asked = clock_;
    if (window_.has_value()) weights.held = weights.open = false;
  }
  if (window_.has_value()) {
    TUG_CHECK(window_->blocks() == options_.blocks && options_.local_steps == 1 &&
              !options_.mode.pulls_newest());
  }
  EnterGate();
  MoveWindow();
}

StepMachine::Next StepMachine::next() const {
  if (!drops_.empty()) return Next::kDrop;
  if (window_.has_value() && !pulls_.empty()) return Next::kPull;
  switch (state_) {
    case State::kFinished:
      return Next::kFinished;
    case State::kGate:
      return Next::kWaitGate;
    case State::kEvaluation:
    case State::kStep:
      if (!pulls_.empty()) return Next::kPull;
      return WeightsAreHere() ? Next::kCompute : Next::kWaitWeights;
  }
  TUG_CHECK(false);
  return Next::kFinished;
}

std::optional<uint32_t> StepMachine::AlsoRead() const {
  if (!window_.has_value()) return std::nullopt;  // the tied block has arrived before
  return window_->AlsoReads(compute_.block);
}

bool StepMachine::WeightsAreHere() const {
  if (!Fits(weights_[compute_.block])) return false;
  const std::optional<uint32_t> other = AlsoRead();
  return !other.has_value() || Fits(weights_[*other]);
}

uint32_t StepMachine::awaited() const {
  return Fits(weights_[compute_.block]) ? AlsoRead().value_or(compute_.block) : compute_.block;
}

StepMachine::Activity StepMachine::activity() const {
  const Next now = next();
  const uint32_t block = now == Next::kCompute       ? compute_.block
                         : now == Next::kWaitWeights ? awaited()
                                                     : 0;
  return {now, block, clock_};
}

void StepMachine::Carry(std::vector<uint64_t> clocks,
                        std::span<const std::optional<uint32_t>> before, StepGate gate) {
  TUG_CHECK(CanPutBack() && !clocks.empty() && before.size() == clocks.size());
  PutBackEvaluation();
  if (std::exchange(step_begun_, false)) begun_ = begun_before_;
  takers_.clear();
  // No clock fits. Pulls in flight are useless: they may wait for a push of this worker.
  for (Weights& weights : weights_) {
    constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
    if (window_.has_value()) {
      weights.asked = weights.clock = kNever;  // dropped, if held
    } else {
      weights = {.open = false, .clock = kNever};
    }
  }
  evaluations_.Carry(clocks, before, version_);
  clocks_.Carry(std::move(clocks), std::move(gate));
  pulls_.clear();
  EnterBoundary();
  MoveWindow();
}

// ---- weights ----

bool StepMachine::Fits(const Weights& weights) const {
  if (!weights.held || weights.open) return false;
  if (!evaluating_last_) return weights.clock == clock_;
  const PullOrder last = clocks_.LastOrder(0);
  return weights.clock == last.clock && weights.exact == last.exact;
}

bool StepMachine::IsFresh() const {
  return state_ != State::kStep || (compute_.phase == ComputePhase::kForward && taker_ == 0 &&
                                    compute_.micro_batch == 0 && compute_.local_step == 0);
}

void StepMachine::OnWeights(uint32_t block, uint64_t lowest, uint64_t highest) {
  Weights& weights = weights_[block];
  weights.open = false;
  weights.clock = options_.mode.skips_steps ? lowest : weights.asked;
  weights.highest = highest;
  if (block == 0) version_ = lowest;
  if (!IsFresh() || state_ == State::kFinished) return;
  if (options_.mode.skips_steps) {
    const uint64_t before = clock_;
    SkipIfBehind();
    if (clock_ != before) return EnterBoundary();
  }
  if (state_ == State::kGate) return;
  // The step's first weights: an evaluation may be due on them.
  const bool at_the_beginning = state_ == State::kStep && block == 0 && compute_.block == 0;
  if (at_the_beginning && Fits(weights) && SeekDueEvaluation(version_)) {
    state_ = State::kEvaluation;
  }
  if (!Fits(weights)) PullMisfits();
}

void StepMachine::SkipIfBehind() {
  uint64_t newest = clock_;
  for (const Weights& weights : weights_) {
    if (!weights.open) newest = std::max(newest, weights.highest);
  }
  if (newest == clock_) return;
  PutBackEvaluation();
  clocks_.SkipTo(newest, skipped_);
  step_begun_ = false;
  clock_ = newest;
}

// Its computations so far are void.
void StepMachine::PutBackEvaluation() {
  if (state_ != State::kEvaluation || evaluating_last_) return;
  evaluations_.PutBack({compute_.virtual_worker, compute_.clock});
}

std::vector<SkippedSteps> StepMachine::TakeSkipped() { return std::exchange(skipped_, {}); }

void StepMachine::PullMisfits() {
  if (window_.has_value()) return MoveWindow();
  pulls_.clear();
  for (uint32_t block = options_.blocks; block-- > 0;) {
    const Weights& weights = weights_[block];
    if (weights.open || Fits(weights)) continue;
    pulls_.push_back(CurrentPull(block));
  }
}

void StepMachine::OnPulling() {
  TUG_CHECK(next() == Next::kPull);
  const PullOrder& order = pulls_.back();
  weights_[order.block] = {.open = true, .asked = order.clock, .exact = order.exact};
  pulls_.pop_back();
}

// ---- the window ----

std::span<const BlockWindow::Use> StepMachine::Window() {
  switch (state_) {
    case State::kFinished:
      return {};
    case State::kGate:
      return window_->At(BlockWindow::Pass::kForward, 0);
    case State::kEvaluation:
      return window_->At(BlockWindow::Pass::kEvaluate, compute_.block);
    case State::kStep:
      return window_->At(compute_.phase == ComputePhase::kBackward ? BlockWindow::Pass::kBackward
                                                                   : BlockWindow::Pass::kForward,
                         compute_.block);
  }
  return {};
}

PullOrder StepMachine::OrderOf(const BlockWindow::Use& use) const {
  const bool ends_step =
      compute_.micro_batch + 1 == options_.micro_batches && taker_ + 1 == takers_.size();
  return use.next_pass && ends_step ? clocks_.OrderAfter(use.block, clock_, takers_)
                                    : CurrentPull(use.block);
}

void StepMachine::MoveWindow() {
  if (!window_.has_value()) return;
  drops_.clear();
  pulls_.clear();
  const std::span<const BlockWindow::Use> uses = Window();
  std::vector<bool> stays(weights_.size(), false);
  for (size_t u = uses.size(); u-- > 0;) {
    const PullOrder order = OrderOf(uses[u]);
    const Weights& weights = weights_[order.block];
    stays[order.block] = weights.held && weights.asked == order.clock;
    if (!stays[order.block]) pulls_.push_back(order);
  }
  for (uint32_t block = 0; block < weights_.size(); ++block) {
    if (weights_[block].held && !stays[block]) drops_.push_back(block);
  }
}

void StepMachine::OnDropped() {
  TUG_CHECK(next() == Next::kDrop);
  weights_[drops_.back()] = {.held = false, .open = false};
  drops_.pop_back();
}

// ---- between steps ----

void StepMachine::SetGate(StepGate gate) {
  clocks_.SetGate(std::move(gate));
  if (state_ == State::kGate) PassGateIfOpen();
  MoveWindow();
}

void StepMachine::SetGate(bool paused, uint64_t final_version) {
  SetGate(GateOf({.go = true, .pause = paused, .final_version = final_version},
                 std::vector<uint32_t>(clocks_.all().size())));
}

bool StepMachine::SeekDueEvaluation(uint64_t version) {
  const auto due = evaluations_.TakeDue(version, clocks_.gate());
  if (due.has_value())
    compute_ = {ComputePhase::kEvaluate, due->version, due->virtual_worker, 0, 0};
  return due.has_value();
}

bool StepMachine::SeekLastEvaluation(uint32_t virtual_worker) {
  const auto next = evaluations_.NextOfLast(virtual_worker, clocks_.all().size());
  if (!next.has_value()) return false;
  compute_ = {ComputePhase::kEvaluate, clocks_.gate().final_version, *next, 0, 0};
  return true;
}

// Between two steps: the evaluation that is due, then the gate.
void StepMachine::EnterBoundary() {
  clock_ = clocks_.StepClock();
  if (options_.mode.skips_steps) SkipIfBehind();
  evaluating_last_ = false;
  const std::optional<uint64_t> version = options_.mode.VersionAt(clock_);
  if (version.has_value() && SeekDueEvaluation(*version)) {
    state_ = State::kEvaluation;
    PullMisfits();
    return;
  }
  EnterGate();
}

void StepMachine::EnterGate() {
  state_ = State::kGate;
  PassGateIfOpen();
}

void StepMachine::PassGateIfOpen() {
  clock_ = clocks_.StepClock();
  if (clocks_.AllFinished()) return End();
  if (clocks_.MayBegin(clock_)) BeginStep();
}

void StepMachine::End() {
  const bool evaluated = std::exchange(evaluating_last_, true);
  state_ = !evaluated && SeekLastEvaluation(0) ? State::kEvaluation : State::kFinished;
  if (state_ == State::kEvaluation) PullMisfits();
}

void StepMachine::BeginStep() {
  state_ = State::kStep;
  step_begun_ = true;
  begun_before_ = std::exchange(begun_, clock_);
  takers_ = clocks_.TakersOf(clock_);
  taker_ = 0;
  compute_ = {ComputePhase::kForward, clock_, takers_[0], 0, 0};
  PullMisfits();
  if (Fits(weights_[0]) && SeekDueEvaluation(version_)) state_ = State::kEvaluation;
}

// ---- computations ----

StepEffects StepMachine::OnComputeDone() {
  TUG_CHECK(next() == Next::kCompute);
  const StepEffects effects = AfterCompute();
  MoveWindow();
  return effects;
}

StepEffects StepMachine::AfterCompute() {
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
  const uint32_t micro_batches =
      evaluations_.MicroBatchesOf(compute_.virtual_worker, evaluating_last_);
  if (++compute_.micro_batch < micro_batches) return {};
  StepEffects effects;
  effects.evaluation_done = true;
  if (evaluating_last_) {
    if (!SeekLastEvaluation(compute_.virtual_worker + 1)) EnterGate();
  } else if (step_begun_) {
    if (SeekDueEvaluation(version_)) return effects;
    state_ = State::kStep;
    compute_ = {ComputePhase::kForward, clock_, takers_[0], 0, 0};
  } else if (!SeekDueEvaluation(clock_)) {
    EnterGate();
  }
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
  const bool last_local_step = compute_.local_step + 1 == options_.local_steps;
  const bool last_taker = taker_ + 1 == takers_.size();
  if (last_micro_batch && last_local_step) {
    effects.push = compute_.block;
    if (last_taker && window_.has_value()) {
      effects.drop = compute_.block;
      weights_[compute_.block] = {.held = false, .open = false};
    } else if (last_taker) {
      effects.pull = clocks_.OrderAfter(compute_.block, clock_, takers_);
      weights_[compute_.block] = {
          .open = true, .asked = effects.pull->clock, .exact = effects.pull->exact};
    }
  }
  if (compute_.block > 0) {
    --compute_.block;
    return effects;
  }
  compute_.phase = ComputePhase::kForward;
  if (!last_micro_batch) {
    ++compute_.micro_batch;
    return effects;
  }
  compute_.micro_batch = 0;
  effects.local_step_done = true;
  if (!last_local_step) {
    ++compute_.local_step;
    return effects;
  }
  compute_.local_step = 0;
  effects.virtual_worker_done = true;
  clocks_.OnTaken(compute_.virtual_worker, clock_);
  if (!last_taker) {
    compute_.virtual_worker = takers_[++taker_];
    return effects;
  }
  effects.step_done = true;
  step_begun_ = false;
  EnterBoundary();
  return effects;
}

}  // namespace tug
