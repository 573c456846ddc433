// SPDX-License-Identifier: Apache-2.0
#include "worker/core/worker_core.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "config/placement_mode.h"
#include "config/push_plan.h"
#include "worker/core/lane_room.h"

namespace tug {

std::optional<BlockWindow> WindowOf(const JobConfig& config, uint32_t blocks,
                                    std::optional<uint32_t> tied) {
  if (!PlacementModeOf(config).frees_weights) return std::nullopt;
  return BlockWindow(blocks, config.placement().prefetch_blocks(), tied);
}

WorkerCore::WorkerCore(Options options, WorkerActions& actions, ControlBoard& board)
    : options_(std::move(options)),
      actions_(actions),
      board_(board),
      mode_(SyncModeOf(options_.config.sync().policy())),
      holds_pushes_(PushPlanOf(options_.config).worker_holds),
      virtual_workers_(options_.virtual_workers),
      machine_(MachineOptions()),
      due_residuals_({options_.config.checkpoint().interval(), options_.start_version, mode_}) {}

StepMachineOptions WorkerCore::MachineOptions() const {
  StepMachineOptions machine;
  machine.blocks = options_.blocks;
  machine.virtual_workers = static_cast<uint32_t>(virtual_workers_.size());
  machine.micro_batches = options_.micro_batches;
  machine.local_steps = std::max(1u, options_.config.sync().local_steps());
  machine.mode = mode_;
  machine.start_version = options_.start_version;
  machine.start_clocks = options_.start_clocks;
  machine.steps = options_.config.train().steps();
  machine.window = options_.window;
  machine.eval_interval = options_.config.train().eval_interval();
  machine.eval_micro_batches = [this](uint32_t index, bool last) {
    return options_.eval_micro_batches(virtual_workers_[index], last);
  };
  return machine;
}

WorkerCore::Next WorkerCore::next() const {
  switch (machine_.next()) {
    case StepMachine::Next::kCompute:
      return Next::kCompute;
    case StepMachine::Next::kPull:
      return running_ ? Next::kAct : Next::kAwaitOrders;
    case StepMachine::Next::kDrop:
      return Next::kAct;
    case StepMachine::Next::kWaitWeights:
      return Next::kAwaitWeights;
    case StepMachine::Next::kWaitGate:
      return Next::kAwaitOrders;
    case StepMachine::Next::kFinished:
      return Next::kFinished;
  }
  return Next::kFinished;
}

// ---- orders ----

absl::Status WorkerCore::RefreshOrders() {
  RETURN_IF_ERROR(board_.cancelled());
  const bool changed = board_.RefreshOrders(orders_);
  RETURN_IF_ERROR(AdoptAssignment());
  if (changed) {
    machine_.SetGate(GateOf(orders_, virtual_workers_));
    RETURN_IF_ERROR(SaveLastResiduals());
  }
  Publish({.started = machine_.begun().has_value(),
           .clock = machine_.begun().value_or(0),
           .pausing = orders_.pause});
  if (orders_.go && !std::exchange(running_, true)) return PullFirstWeights();
  return absl::OkStatus();
}

void WorkerCore::Publish(ControlBoard::State state) {
  state.schedule = schedule_.number;
  state.view = view_;
  board_.SetState(state);
}

absl::Status WorkerCore::AdoptAssignment() {
  if (orders_.view == view_ || !machine_.CanPutBack()) return absl::OkStatus();
  WorkerPlace place = board_.place();
  view_ = orders_.view;
  if (place.virtual_workers == virtual_workers_) return absl::OkStatus();
  std::vector<uint64_t> clocks;
  std::vector<std::optional<uint32_t>> before;
  for (size_t i = 0; i < place.virtual_workers.size(); ++i) {
    const auto had =
        std::find(virtual_workers_.begin(), virtual_workers_.end(), place.virtual_workers[i]);
    if (had == virtual_workers_.end()) {
      before.emplace_back(std::nullopt);
      clocks.push_back(place.start_clocks[i]);
    } else {
      before.emplace_back(static_cast<uint32_t>(had - virtual_workers_.begin()));
      clocks.push_back(machine_.next_clock(*before.back()));
    }
  }
  virtual_workers_ = std::move(place.virtual_workers);
  actions_.Carry(virtual_workers_, before);
  VoidShares();
  held_.clear();
  machine_.Carry(std::move(clocks), before, GateOf(orders_, virtual_workers_));
  for (uint32_t index = 0; index < before.size(); ++index) {
    if (before[index].has_value()) continue;
    due_residuals_.Forget(virtual_workers_[index]);
    came_in_view_[virtual_workers_[index]] = view_;
    RETURN_IF_ERROR(SaveResidualsAt(index, machine_.next_clock(index)));
  }
  return absl::OkStatus();
}

bool WorkerCore::WaitsForRoomOnLanes() const {
  return tug::WaitsForRoomOnLanes(board_.orders(), board_.place().virtual_workers,
                                  machine_.paused(), view_, virtual_workers_);
}

// ---- weights ----

// Called once every node is ready: a lane still in the previous timeline would refuse the pulls.
// With a window the step machine orders them. A worker may join when the job is done.
absl::Status WorkerCore::PullFirstWeights() {
  const bool pulls = !options_.window.has_value() && next() != Next::kFinished;
  for (uint32_t block = 0; block < options_.blocks && pulls; ++block) {
    Pull(machine_.CurrentPull(block), /*whole=*/false);
  }
  // A virtual worker that joins during the timeline has no residuals for earlier checkpoints.
  for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
    RETURN_IF_ERROR(SaveResidualsAt(i, machine_.next_clock(i)));
  }
  return absl::OkStatus();
}

absl::Status WorkerCore::Act() {
  if (machine_.next() == StepMachine::Next::kDrop) {
    RETURN_IF_ERROR(actions_.Drop(machine_.drop()));
    machine_.OnDropped();
    return absl::OkStatus();
  }
  Pull(machine_.pull(), EvaluationDue(machine_.pull().clock));
  machine_.OnPulling();
  return absl::OkStatus();
}

bool WorkerCore::EvaluationDue(uint64_t version) const {
  const uint64_t interval = options_.config.train().eval_interval();
  return (interval > 0 && version % interval == 0) || version == orders_.final_version;
}

// Under BSP only one version fits; under the other policies lanes serve the newest.
void WorkerCore::Pull(const PullOrder& order, bool whole) {
  const bool newest = mode_.pulls_newest() && !order.exact;
  actions_.Pull({.block = order.block,
                 .want = newest ? Want::kAtLeast : Want::kExact,
                 .clock = order.clock,
                 .virtual_workers = FirstRun(
                     std::span(virtual_workers_).subspan(order.first_taker, order.takers))},
                whole || order.exact);
}

void WorkerCore::PullWhole(uint32_t block) { Pull(machine_.CurrentPull(block), /*whole=*/true); }

absl::Status WorkerCore::OnWeights(uint32_t block, const OpenRequests::Versions& versions) {
  const uint64_t lowest = StepOfVersion(options_.config, versions.lowest);
  if (block == 0 && due_residuals_.OnWeights(lowest)) {
    for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
      RETURN_IF_ERROR(SaveResidualsAt(i, machine_.next_clock(i)));
    }
  }
  machine_.OnWeights(block, lowest, StepOfVersion(options_.config, versions.highest));
  return ReportSkipped();
}

bool WorkerCore::AwaitsFirstWeights() const {
  const uint64_t start = options_.start_version;
  return !stepped_ && machine_.clock() == start && (start == 0 || mode_.VersionAt(start));
}

// ---- computations ----

// A step uses one schedule for all pushes and pulls; the previous step has requested its weights.
void WorkerCore::BeginCompute() {
  const Compute& compute = machine_.compute();
  const bool first = compute.phase == ComputePhase::kForward && step_shares_.empty() &&
                     compute.micro_batch == 0 && compute.block == 0 && compute.local_step == 0;
  if (!first || orders_.schedule == schedule_) return;
  schedule_ = orders_.schedule;
  actions_.SetSchedule(schedule_);
}

WorkerCore::Computed WorkerCore::OnComputeDone() {
  Computed computed{.compute = machine_.compute(), .evaluated_last = machine_.evaluating_last()};
  computed.effects = machine_.OnComputeDone();
  return computed;
}

absl::Status WorkerCore::Finish(const Computed& computed) {
  const auto& [compute, effects, evaluated_last] = computed;
  if (effects.drop.has_value()) RETURN_IF_ERROR(actions_.Drop({.block = *effects.drop}));
  if (effects.push.has_value()) {
    held_.push_back({*effects.push, effects.pull});
    if (!holds_pushes_ || effects.virtual_worker_done) PushHeld(compute);
  }
  if (effects.virtual_worker_done) {
    step_shares_.push_back({virtual_workers_[compute.virtual_worker], std::exchange(share_, {})});
    RETURN_IF_ERROR(SaveResidualsAt(compute.virtual_worker, compute.clock + 1));
  }
  if (effects.step_done) ReportStep(compute.clock);
  if (effects.evaluation_done) ReportEval(computed);
  return absl::OkStatus();
}

void WorkerCore::PushHeld(const Compute& compute) {
  for (const HeldPush& push : std::exchange(held_, {})) {
    actions_.Push(compute, {push.block, TermsOf(share_), push.pull.has_value()});
    if (push.pull.has_value()) Pull(*push.pull, EvaluationDue(push.pull->clock));
  }
}

// Differences of local steps are averaged: each counts as one term.
uint64_t WorkerCore::TermsOf(const Share& share) const {
  return options_.config.sync().local_steps() > 1 ? 1 : share.sums.targets;
}

absl::Status WorkerCore::OnFinished() {
  RETURN_IF_ERROR(SaveLastResiduals());
  Publish({.started = true,
           .clock = machine_.begun().value_or(machine_.clock() - 1),
           .pausing = machine_.paused(),
           .finished = true});
  return absl::OkStatus();
}

// ---- residuals ----

absl::Status WorkerCore::SaveResiduals(uint32_t index, std::vector<uint64_t> due) {
  if (!options_.saves_residuals || due.empty()) return absl::OkStatus();
  const uint32_t virtual_worker = virtual_workers_[index];
  const auto came = came_in_view_.find(virtual_worker);
  return actions_.SaveResiduals(
      {virtual_worker, std::move(due), came == came_in_view_.end() ? options_.view : came->second});
}

// Residuals of the last version are saved as soon as the virtual worker has made its last push: the
// last weights may never come, if a server is lost.
absl::Status WorkerCore::SaveResidualsAt(uint32_t index, uint64_t clock) {
  if (!options_.saves_residuals) return absl::OkStatus();
  const uint32_t virtual_worker = virtual_workers_[index];
  const uint64_t last = orders_.final_version;
  return SaveResiduals(index, machine_.IsPastEnd(index, clock)
                                  ? due_residuals_.AtEnd(virtual_worker, last)
                                  : due_residuals_.AtClock(virtual_worker, clock, last));
}

absl::Status WorkerCore::SaveLastResiduals() {
  for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
    const uint64_t clock = machine_.next_clock(i);
    if (machine_.IsPastEnd(i, clock)) RETURN_IF_ERROR(SaveResidualsAt(i, clock));
  }
  return absl::OkStatus();
}

// ---- reports ----

void WorkerCore::Share::Add(const LossSums& more) {
  sums.loss += more.loss;
  sums.targets += more.targets;
  sums.correct += more.correct;
}

void WorkerCore::VoidShares() {
  share_ = {};
  step_shares_.clear();
}

void WorkerCore::ReportStep(uint64_t clock) {
  uint64_t tokens = 0;
  for (const StepShare& done : step_shares_) tokens += done.share.tokens;
  StepReport report = actions_.EndStep(clock, tokens);
  report.set_clock(clock);
  report.set_schedule(schedule_.number);
  for (const auto& [virtual_worker, share] : std::exchange(step_shares_, {})) {
    report.set_virtual_worker(virtual_worker);
    const auto terms = static_cast<double>(std::max<uint64_t>(TermsOf(share), 1));
    report.set_residual_squares(actions_.ResidualSquares(virtual_worker) / (terms * terms));
    report.set_loss_sum(share.sums.loss);
    report.set_targets(share.sums.targets);
    report.set_correct(share.sums.correct);
    report.set_tokens(share.tokens);
    board_.AddStep(report);
  }
  stepped_ = true;
}

absl::Status WorkerCore::ReportSkipped() {
  for (const SkippedSteps& skipped : machine_.TakeSkipped()) {
    VoidShares();
    for (uint64_t clock = skipped.first; clock < skipped.end; ++clock) {
      StepReport report;
      report.set_virtual_worker(virtual_workers_[skipped.virtual_worker]);
      report.set_clock(clock);
      report.set_skipped(true);
      report.set_schedule(schedule_.number);
      board_.AddStep(std::move(report));
    }
    RETURN_IF_ERROR(SaveResidualsAt(skipped.virtual_worker, skipped.end));
  }
  return absl::OkStatus();
}

void WorkerCore::ReportEval(const Computed& computed) {
  EvalReport report;
  report.set_virtual_worker(virtual_workers_[computed.compute.virtual_worker]);
  report.set_version(computed.compute.clock);
  const Share share = std::exchange(share_, {});
  report.set_loss_sum(share.sums.loss);
  report.set_targets(share.sums.targets);
  report.set_correct(share.sums.correct);
  report.set_final(computed.evaluated_last);
  board_.AddEval(std::move(report));
}

}  // namespace tug
