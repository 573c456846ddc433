// The worker of a simulated cluster.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "exchange/view_lanes.h"
#include "exchange/worker_place.h"
#include "proto/placement_mode.h"
#include "simulate/worker_node.h"
#include "worker/orders_gate.h"
#include "worker/straggler.h"

namespace tug {

void SimulatedWorker::OnView(const View& view) {
  place_ = PlaceOf(view, node_id_);
  view_ = view.number();
  if (view.timeline() != timeline_) return Begin(view, place_);
  TUG_CHECK(ConnectToLanes(view, WorkerPeer(node_id_), *transport_).ok());
  exchange_->SetView(ViewRequestOf(view, WorkerPeer(node_id_), config_), world_.time.Now());
  ForgetWhatOthersTake(view);
  TakePlace();
}

void SimulatedWorker::TakePlace() {
  if (taken_view_ == view_ || computing_ || !machine_->CanPutBack()) return;
  taken_view_ = view_;
  world_.Say(absl::StrCat(Name(), " carries ", place_.virtual_workers.size(),
                          " virtual workers in view ", view_));
  if (place_.virtual_workers == virtual_workers_) return;
  std::vector<StepMachine::Carried> carried;
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients;
  std::vector<uint64_t> steps_taken;
  for (size_t i = 0; i < place_.virtual_workers.size(); ++i) {
    const uint32_t virtual_worker = place_.virtual_workers[i];
    const auto had = std::find(virtual_workers_.begin(), virtual_workers_.end(), virtual_worker);
    if (had == virtual_workers_.end()) {
      carried.push_back({.clock = place_.start_clocks[i]});
      gradients.emplace_back(weights_.size());
      steps_taken.push_back(0);
      continue;
    }
    const auto before = static_cast<uint32_t>(had - virtual_workers_.begin());
    carried.push_back({.clock = machine_->next_clock(before), .before = before});
    gradients.push_back(std::move(gradients_[before]));
    steps_taken.push_back(steps_taken_[before]);
  }
  virtual_workers_ = place_.virtual_workers;
  gradients_ = std::move(gradients);
  steps_taken_ = std::move(steps_taken);
  loss_ = 0;
  exchange_->SetCarried({virtual_workers_}, world_.time.Now());
  machine_->Carry(carried);
  for (uint32_t i = 0; i < carried.size(); ++i) {
    if (carried[i].before.has_value() || !due_residuals_.has_value()) continue;
    due_residuals_->Forget(virtual_workers_[i]);
    SaveResidualsAt(i, machine_->next_clock(i));
  }
}

void SimulatedWorker::Begin(const View& view, const WorkerPlace& place) {
  timeline_ = view.timeline();
  timeline_view_ = view_;
  taken_view_ = view_;
  transport_.reset();
  exchange_.reset();
  weights_.clear();
  arrived_.clear();
  gradients_.clear();
  evaluated_.clear();
  steps_.clear();
  orders_ = {};
  schedule_ = 0;
  loss_ = 0;
  computing_ = pulling_ = ordered_ = false;
  virtual_workers_ = place.virtual_workers;
  steps_taken_.assign(virtual_workers_.size(), 0);
  for (uint32_t b = 0; b < world_.table.num_blocks(); ++b) {
    weights_.emplace_back(world_.table.block_elements(b));
  }
  arrived_.resize(weights_.size());
  versions_.assign(weights_.size(), 0);
  evaluated_.resize(weights_.size());
  evaluated_versions_.assign(weights_.size(), 0);
  gradients_.resize(virtual_workers_.size(),
                    std::vector<std::shared_ptr<AlignedBuffer>>(weights_.size()));
  StepMachineOptions machine;
  machine.blocks = world_.table.num_blocks();
  machine.virtual_workers = static_cast<uint32_t>(virtual_workers_.size());
  machine.micro_batches = 2;
  machine.local_steps = std::max(1u, config_.sync().local_steps());
  machine.mode = SyncModeOf(config_.sync().policy());
  machine.start_version = view.start_version();
  machine.start_clocks = place.start_clocks;
  machine.steps = config_.train().steps();
  if (PlacementModeOf(config_).frees_weights) {
    machine.window.emplace(machine.blocks, config_.placement().prefetch_blocks(), std::nullopt);
  }
  machine.eval_micro_batches = [](uint32_t virtual_worker, bool last) {
    return last && virtual_worker == 0 ? 1u : 0u;
  };
  machine_ = std::make_unique<StepMachine>(machine);

  open_pushes_.clear();
  unreceived_pushes_.clear();
  ExchangeOptions options;
  options.job = job_;
  options.timeline = view.timeline();
  options.view = view.number();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.comm = config_.comm();
  planted_ = PlantedWorker(world_.options.plant);
  if (world_.options.plant == PlantedBug::kPatience) {
    options.comm.set_resend_ms(50 * options.comm.resend_ms());
  }
  options.update_per_push = machine.mode.update_per_push;
  options.frees_gradients = PlacementModeOf(config_).frees_gradients;
  options.pull_lanes = PullLanesFor(view, WorkerPeer(node_id_), config_);
  options.block_names = BlockNames(view.blocks());
  options.seed = config_.seed();
  exchange_ = std::make_unique<Exchange>(
      options, world_.table,
      ExchangeSinks{.send =
                        [this](Outgoing m) {
                          planted_.Change(m);
                          transport_->Send(std::move(m)).IgnoreError();
                        },
                    .pulled =
                        [this](BlockPulled e) {
                          if (!e.superseded) arrived_[e.block] = e;
                        },
                    .committed =
                        [this](PushCommitted e) {
                          TUG_CHECK(!e.lost);
                          open_pushes_.erase({e.block, e.virtual_worker});
                        },
                    .received =
                        [this](PushReceived e) {
                          unreceived_pushes_.erase({e.block, e.virtual_worker});
                        }});
  const PeerId self = WorkerPeer(node_id_);
  transport_ = world_.network.NewEndpoint(self, [this] {
    if (!frozen()) LookForMail();
  });
  TUG_CHECK(ConnectToLanes(view, self, *transport_).ok());

  parts_.clear();
  due_residuals_.reset();
  if (!KeepsResiduals(config_)) return;
  due_residuals_.emplace(DueResiduals::Options{config_.checkpoint().interval(),
                                               view.start_version(), machine.mode.update_per_push});
  RestoreResiduals(view, place);
  for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
    SaveResidualsAt(i, machine_->next_clock(i));
  }
}

void SimulatedWorker::LookForMail() {
  if (transport_ == nullptr) return;
  while (transport_->mail() > 0) {
    transport_->Poll(absl::ZeroDuration(),
                     [&](Message message) { exchange_->OnMessage(message, world_.time.Now()); });
  }
  Advance();
}

void SimulatedWorker::Report(HeartbeatRequest& request) {
  request.set_ready(machine_ != nullptr);
  for (const StepReport& step : steps_) *request.add_steps() = step;
  for (const auto& [virtual_worker, reports] : parts_) {
    for (const CheckpointPart& part : reports.parts()) *request.add_parts() = part;
  }
  if (machine_ == nullptr) return;
  request.set_started(machine_->begun().has_value());
  request.set_clock(machine_->begun().value_or(0));
  const bool placed = taken_view_ == view_;
  request.set_pausing(machine_->paused() && placed);
  request.set_finished(machine_->next() == StepMachine::Next::kFinished && placed);
  request.set_schedule(schedule_);
}

void SimulatedWorker::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  if (sent.known_view() >= timeline_view_) {  // else they are of a timeline before
    steps_.erase(steps_.begin(), steps_.begin() + sent.steps_size());
    for (const CheckpointPart& part : sent.parts()) {
      const auto reports = parts_.find(part.virtual_worker());
      if (reports != parts_.end()) reports->second.OnHeard(part.version());
    }
  }
  if (machine_ == nullptr || !reply.go()) return;
  if (!std::exchange(pulling_, true) && !PlacementModeOf(config_).frees_weights) {
    for (uint32_t b = 0; b < weights_.size(); ++b) Pull(machine_->CurrentPull(b));
  }
  orders_ = ControlBoard::OrdersOf(reply, orders_.schedule);
  ordered_ = true;
  Advance();
}

void SimulatedWorker::Tick() {
  if (exchange_ != nullptr) exchange_->OnTick(world_.time.Now());
}

void SimulatedWorker::Advance() {
  if (computing_) return;
  const uint32_t view = taken_view_;
  TakePlace();
  const bool ordered = std::exchange(ordered_, false);
  if (ordered || (pulling_ && taken_view_ != view)) {
    machine_->SetGate(GateOf(orders_, virtual_workers_));
  }
  while (true) {
    switch (machine_->next()) {
      case StepMachine::Next::kFinished:
        SaveLastResiduals();
        return;
      case StepMachine::Next::kWaitGate:
        return;
      case StepMachine::Next::kPull:
        if (!pulling_) return;
        Pull(machine_->pull());
        machine_->OnPulling();
        break;
      case StepMachine::Next::kDrop:
        if (machine_->drop().open) exchange_->GiveUpPull(machine_->drop().block);
        Drop(machine_->drop().block);
        machine_->OnDropped();
        break;
      case StepMachine::Next::kWaitWeights: {
        const uint32_t block = machine_->awaited();
        if (!arrived_[block].has_value()) return;
        const BlockPulled pulled = *std::exchange(arrived_[block], std::nullopt);
        if (world_.options.watch != nullptr) {
          world_.options.watch->OnPulled(node_id_, block, pulled.version, weights_[block]);
        }
        const uint64_t updates = SyncModeOf(config_.sync().policy()).update_per_push
                                     ? config_.cluster().virtual_workers()
                                     : 1;  // in a step
        if (block == 0 && due_residuals_.has_value() &&
            SyncModeOf(config_.sync().policy()).update_per_push) {
          due_residuals_->OnWeights(pulled.version / updates);
          for (uint32_t i = 0; i < virtual_workers_.size(); ++i) {
            SaveResidualsAt(i, machine_->next_clock(i));
          }
        }
        versions_[block] = pulled.version / updates;
        machine_->OnWeights(block, pulled.version / updates, pulled.newest / updates);
        ReportSkipped();
        break;
      }
      case StepMachine::Next::kCompute:
        if (WaitsForCommit(machine_->compute()) || WaitsForBuffer(machine_->compute())) return;
        computing_ = true;
        After(MostTime(machine_->compute()), [this, timeline = timeline_] {
          if (timeline != timeline_) return;
          computing_ = false;
          Compute();
          Advance();
        });
        return;
    }
  }
}

// Whether the gradient that is to be written is still being pushed, of the step before: as
// TrainingLoop::BindGradient.
bool SimulatedWorker::WaitsForCommit(const struct Compute& compute) const {
  return compute.phase == ComputePhase::kBackward &&
         open_pushes_.contains({compute.block, virtual_workers_[compute.virtual_worker]});
}

// Whether all memory for gradients is in use, as TrainingLoop::TakeGradient; here of the
// micro-batch that is pushed.
bool SimulatedWorker::WaitsForBuffer(const struct Compute& compute) const {
  const bool pushes = compute.phase == ComputePhase::kBackward && compute.micro_batch == 1;
  if (!PlacementModeOf(config_).frees_gradients || !pushes) return false;
  if (unreceived_pushes_.size() < std::max(1u, config_.placement().gradient_blocks())) return false;
  ControlBoard::Orders newest = orders_;
  newest.view = view_;
  return WaitsForRoomOnLanes(newest, place_.virtual_workers, machine_->paused(), taken_view_,
                             virtual_workers_);
}

absl::Duration SimulatedWorker::MostTime(const struct Compute& compute) const {
  const Straggler straggler(config_);
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  const absl::Duration most = world_.options.max_compute;
  absl::Duration time = most + straggler.Slowdown(virtual_worker, most);
  if (compute.phase == ComputePhase::kBackward && compute.block == 0) {
    time += straggler.Pause(compute.clock, virtual_worker);
  }
  return time;
}

void SimulatedWorker::Compute() {
  const struct Compute compute = machine_->compute();
  if (compute.phase == ComputePhase::kEvaluate && machine_->evaluating_last()) {
    evaluated_[compute.block] = weights_[compute.block];
    evaluated_versions_[compute.block] = versions_[compute.block];
  }
  MayChangeSchedule(compute);
  if (compute.phase == ComputePhase::kBackward) AddGradient(compute);
  const StepEffects effects = machine_->OnComputeDone();
  if (effects.drop.has_value()) Drop(*effects.drop);
  if (effects.push.has_value()) Push(compute, *effects.push);
  if (effects.pull.has_value()) Pull(*effects.pull);
  if (effects.virtual_worker_done) Report(compute);
  ReportSkipped();
}

void SimulatedWorker::Push(const struct Compute& compute, uint32_t block) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const Lease lease(gradient, std::as_const(*gradient).floats());
  gradient.reset();  // a fresh one next time: repeats under way may still read this one
  const uint64_t tokens = config_.sync().local_steps() > 1 ? 1 : kSimulatedTokens;
  open_pushes_.insert({block, virtual_workers_[compute.virtual_worker]});
  if (PlacementModeOf(config_).frees_gradients) {
    unreceived_pushes_.insert({block, virtual_workers_[compute.virtual_worker]});
    most_unreceived_ = std::max<uint64_t>(most_unreceived_, unreceived_pushes_.size());
  }
  exchange_->Push(
      {block, virtual_workers_[compute.virtual_worker], 1, compute.clock, tokens, lease},
      world_.time.Now());
}

void SimulatedWorker::Report(const struct Compute& compute) {
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  world_.clocks[virtual_worker] = compute.clock + 1;
  SaveResidualsAt(compute.virtual_worker, compute.clock + 1);
  ++steps_taken_[compute.virtual_worker];
  StepReport report;
  report.set_virtual_worker(virtual_worker);
  report.set_clock(compute.clock);
  report.set_loss_sum(std::exchange(loss_, 0.0));
  report.set_tokens(kSimulatedTokens);
  report.set_targets(kSimulatedTokens);
  report.set_step_seconds(absl::ToDoubleSeconds(world_.time.Now() - step_began_));
  report.set_schedule(schedule_);
  steps_.push_back(std::move(report));
}

void SimulatedWorker::ReportSkipped() {
  for (const SkippedSteps& skipped : machine_->TakeSkipped()) {
    const uint32_t virtual_worker = virtual_workers_[skipped.virtual_worker];
    world_.clocks[virtual_worker] = skipped.end;
    SaveResidualsAt(skipped.virtual_worker, skipped.end);
    skipped_ += skipped.end - skipped.first;
    loss_ = 0;
    for (uint64_t clock = skipped.first; clock < skipped.end; ++clock) {
      StepReport report;
      report.set_virtual_worker(virtual_worker);
      report.set_clock(clock);
      report.set_skipped(true);
      report.set_schedule(schedule_);
      steps_.push_back(std::move(report));
    }
  }
}

void SimulatedWorker::MayChangeSchedule(const struct Compute& compute) {
  const bool begins = compute.phase == ComputePhase::kForward && compute.micro_batch == 0 &&
                      compute.block == 0 && compute.local_step == 0;
  if (begins) {
    step_began_ = world_.time.Now();
    const uint64_t slowest = *std::min_element(world_.clocks.begin(), world_.clocks.end());
    if (compute.clock > slowest) {
      world_.most_lead = std::max(world_.most_lead, compute.clock - slowest);
    }
  }
  if (begins && orders_.schedule.number != schedule_) {
    schedule_ = orders_.schedule.number;
    exchange_->SetSchedule(orders_.schedule, world_.time.Now());
    ++schedule_changes_;
  }
  if (const std::optional<SchedulePoint> point = RandomSchedule()) {
    exchange_->SetSchedule({.number = schedule_,
                            .partition_bytes = point->partition_bytes,
                            .credit_bytes = point->credit_bytes},
                           world_.time.Now());
    ++schedule_changes_;
  }
}

// Pulls weights towards a target that differs by virtual worker and clock; all of it depends on the
// bits of the weights.
void SimulatedWorker::AddGradient(const struct Compute& compute) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][compute.block];
  const std::vector<float>& weights = weights_[compute.block];
  if (gradient == nullptr) {
    gradient = std::make_shared<AlignedBuffer>(weights.size() * sizeof(float));
  }
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  const float of_weights = world_.options.gradient_of_weights ? 0.5f : 0.0f;
  const std::span<float> out = gradient->floats();
  const SimulatedGradients own(virtual_worker, compute.clock, compute.block);
  for (size_t e = 0; e < out.size(); ++e) out[e] += weights[e] * of_weights + own[e];
  loss_ += out[0];
  const bool poisoned = compute.block == 0 && compute.clock == world_.options.poisoned_clock &&
                        virtual_worker == world_.options.poisoned_virtual_worker;
  if (poisoned) out[out.size() / 2] = std::numeric_limits<float>::quiet_NaN();
}

void SimulatedWorker::Collect(SimulationResult& result) {
  if (exchange_ == nullptr) return;  // the job ended before it began
  result.schedule_changes += schedule_changes_;
  result.resent += exchange_->counters().resent;
  result.most_push_bytes =
      std::max(result.most_push_bytes, exchange_->counters().most_outstanding_bytes);
  for (size_t v = 0; v < virtual_workers_.size(); ++v) {
    result.steps[virtual_workers_[v]] = steps_taken_[v];
  }
  result.skipped += skipped_;
  result.most_unreceived = std::max(result.most_unreceived, most_unreceived_);
  result.pushed_bytes += exchange_->counters().pushed_bytes;
  result.evaluated.push_back(evaluated_);
  result.evaluated_versions.push_back(evaluated_versions_);
}

// What is computed of weights that were let go of is no number.
void SimulatedWorker::Drop(uint32_t block) {
  arrived_[block].reset();
  std::fill(weights_[block].begin(), weights_[block].end(),
            std::numeric_limits<float>::quiet_NaN());
}

void SimulatedWorker::Pull(const PullOrder& order) {
  const SyncMode& mode = SyncModeOf(config_.sync().policy());
  const bool newest = (mode.update_per_push && !order.exact) || mode.skips_steps;
  arrived_[order.block].reset();
  exchange_->Pull({.block = order.block,
                   .want = newest ? Want::kAtLeast : Want::kExact,
                   .version = order.clock,
                   .destination = weights_[order.block],
                   .virtual_workers = FirstRun(
                       std::span(virtual_workers_).subspan(order.first_taker, order.takers))},
                  world_.time.Now());
}

}  // namespace tug
