// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/worker_node.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "blocks/view_lanes.h"
#include "blocks/worker_place.h"
#include "config/placement_mode.h"
#include "model/transformer/memory.h"
#include "worker/core/straggler.h"
#include "worker/gradients/restore_residuals.h"

namespace tug {
namespace {

constexpr uint32_t kMicroBatches = 2;

}  // namespace

// ---- the node ----

void SimulatedWorker::OnView(const View& view) {
  if (view.timeline() != timeline_) return Begin(view);
  exchange_->SetView(view);
  parts_->OnView(view, node_id_);
  board_->SetPlace(view.number(), PlaceOf(view, node_id_));
  Advance();
}

void SimulatedWorker::Begin(const View& view) {
  timeline_ = view.timeline();
  timeline_view_ = view.number();
  schedule_ = {};
  computing_ = false;
  weights_.clear();
  for (uint32_t b = 0; b < world_.table.num_blocks(); ++b) {
    weights_.emplace_back(world_.table.block_elements(b));
  }
  versions_.assign(weights_.size(), 0);
  evaluated_.assign(weights_.size(), {});
  evaluated_versions_.assign(weights_.size(), 0);
  const WorkerPlace place = PlaceOf(view, node_id_);
  steps_taken_.assign(place.virtual_workers.size(), 0);
  gradients_.assign(place.virtual_workers.size(),
                    std::vector<std::shared_ptr<AlignedBuffer>>(weights_.size()));
  exchange_.reset();
  exchange_ = std::make_unique<SimulatedExchange>(world_, config_, job_, view, node_id_, [this] {
    if (!frozen()) LookForMail();
  });
  BuildCore(view, place);
  parts_ = std::make_unique<ResidualParts>(core_->mode());
  if (KeepsResiduals(config_)) RestoreResiduals(view, place);
}

void SimulatedWorker::BuildCore(const View& view, const WorkerPlace& place) {
  const uint32_t blocks = world_.table.num_blocks();
  // A pool bounds gradients only in steps of one micro-batch.
  const uint32_t micro_batches = PlacementModeOf(config_).frees_gradients ? 1 : kMicroBatches;
  pool_.reset();
  if (PlacementModeOf(config_).frees_gradients) {
    std::vector<size_t> block_bytes;
    for (uint32_t b = 0; b < blocks; ++b) {
      block_bytes.push_back(world_.table.block_elements(b) * sizeof(float));
    }
    pool_.emplace(block_bytes, GradientBlocks(config_.placement(), micro_batches, blocks),
                  [](size_t bytes) { return std::make_shared<AlignedBuffer>(bytes); });
  }
  board_ = std::make_unique<ControlBoard>();
  core_ = std::make_unique<WorkerCore>(
      WorkerCore::Options{.config = config_,
                          .virtual_workers = place.virtual_workers,
                          .start_clocks = place.start_clocks,
                          .start_version = view.start_version(),
                          .view = view.number(),
                          .blocks = blocks,
                          .micro_batches = micro_batches,
                          .window = WindowOf(config_, blocks, std::nullopt),
                          .eval_micro_batches = [](uint32_t, bool) { return 1u; },
                          .saves_residuals = KeepsResiduals(config_)},
      static_cast<WorkerActions&>(*this), *board_);
}

void SimulatedWorker::RestoreResiduals(const View& view, const WorkerPlace& place) {
  for (const size_t i : ResidualsToRestore(view, place, core_->mode())) {
    const uint32_t virtual_worker = place.virtual_workers[i];
    const Manifest& manifest = world_.store.checkpoints.at(view.start_version());
    if (!HasResidualsAt(manifest, virtual_worker, place.start_clocks[i])) continue;
    for (const ManifestFile& file : manifest.files()) {
      const auto stored = world_.store.residuals.find(file.name());
      if (stored == world_.store.residuals.end()) continue;
      if (stored->second.virtual_worker != virtual_worker) continue;
      std::vector<SegmentResidual> residuals;
      for (const auto& [segment, values] : stored->second.segments) {
        residuals.push_back({segment, AlignedBuffer(values.size() * sizeof(float))});
        std::copy(values.begin(), values.end(), residuals.back().values.floats().begin());
      }
      exchange_->machine().RestoreResiduals(virtual_worker, std::move(residuals));
    }
  }
}

void SimulatedWorker::LookForMail() {
  if (exchange_ == nullptr) return;
  exchange_->Poll();
  Advance();
}

void SimulatedWorker::Report(HeartbeatRequest& request) {
  request.set_ready(core_ != nullptr);
  if (core_ == nullptr) return;
  board_->AddTo(request);
  parts_->AddTo(request);
}

void SimulatedWorker::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  if (core_ == nullptr) return;
  // Reports of the previous timeline were discarded with it.
  const HeartbeatRequest confirmed =
      sent.known_view() >= timeline_view_ ? sent : HeartbeatRequest();
  CountSkipped(confirmed);
  parts_->OnHeard(confirmed);
  board_->OnReply(reply, confirmed);
  Advance();
}

void SimulatedWorker::CountSkipped(const HeartbeatRequest& confirmed) {
  for (const StepReport& step : confirmed.steps()) skipped_ += step.skipped() ? 1 : 0;
}

void SimulatedWorker::Tick() {
  if (exchange_ != nullptr) exchange_->Tick();
}

void SimulatedWorker::Advance() {
  while (!computing_) {
    const uint32_t view = core_->view();
    const absl::Status ordered = core_->RefreshOrders();
    TUG_CHECK(ordered.ok()) << ordered.ToString();
    if (core_->view() != view) {
      world_.Say(absl::StrCat(Name(), " runs ", core_->virtual_workers().size(),
                              " virtual workers in view ", core_->view()));
    }
    switch (core_->next()) {
      case WorkerCore::Next::kFinished:
        TUG_CHECK(core_->OnFinished().ok());
        return;
      case WorkerCore::Next::kAwaitOrders:
        step_began_ = world_.time.Now();
        return;
      case WorkerCore::Next::kAct:
        TUG_CHECK(core_->Act().ok());
        break;
      case WorkerCore::Next::kAwaitWeights:
        if (!TakeWeights(core_->awaited())) return;
        break;
      case WorkerCore::Next::kCompute:
        if (!BindGradient(core_->compute())) return;
        BeginCompute(core_->compute());
        break;
    }
  }
}

// ---- computations ----

bool SimulatedWorker::BindGradient(const Compute& compute) {
  if (compute.phase != ComputePhase::kBackward) return true;
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][compute.block];
  if (gradient != nullptr) return true;
  if (pool_.has_value()) {
    gradient = pool_->Take(compute.block);
    while (gradient == nullptr) {
      const std::optional<GradientPool::Pushed> oldest = pool_->oldest();
      const bool received =
          oldest.has_value() && exchange_->open().IsReceived(oldest->block, oldest->virtual_worker);
      const bool waits = oldest.has_value() && !received &&
                         !exchange_->open().IsDeferred(oldest->block, oldest->virtual_worker);
      gradient = pool_->TakeAfter(compute.block, received, !waits && !core_->WaitsForRoomOnLanes());
      if (gradient == nullptr && !received) return false;
    }
  } else if (exchange_->open().IsCommitted(compute.block, core_->NumberOf(compute))) {
    gradient = std::make_shared<AlignedBuffer>(weights_[compute.block].size() * sizeof(float));
  } else {
    return false;
  }
  std::fill(gradient->floats().begin(), gradient->floats().end(), 0.0f);
  return true;
}

void SimulatedWorker::BeginCompute(const Compute& compute) {
  const bool begins = compute.phase == ComputePhase::kForward && compute.micro_batch == 0 &&
                      compute.block == 0 && compute.local_step == 0;
  if (begins) {
    core_->share().sums.targets = core_->share().tokens = kSimulatedTokens;
    const uint64_t slowest = *std::min_element(world_.clocks.begin(), world_.clocks.end());
    if (compute.clock > slowest) {
      world_.max_lead = std::max(world_.max_lead, compute.clock - slowest);
    }
  }
  core_->BeginCompute();
  computing_ = true;
  After(MostTime(compute), [this, timeline = timeline_] {
    if (timeline != timeline_) return;
    computing_ = false;
    EndCompute();
    Advance();
  });
}

void SimulatedWorker::EndCompute() {
  const Compute compute = core_->compute();
  if (compute.phase == ComputePhase::kEvaluate && core_->evaluating_last()) {
    evaluated_[compute.block] = weights_[compute.block];
    evaluated_versions_[compute.block] = versions_[compute.block];
  }
  if (const std::optional<SchedulePoint> point = RandomSchedule()) {
    exchange_->SetSchedule({.number = schedule_.number,
                            .partition_bytes = point->partition_bytes,
                            .credit_bytes = point->credit_bytes});
    ++schedule_changes_;
  }
  if (compute.phase == ComputePhase::kBackward) {
    const std::span<float> gradient = gradients_[compute.virtual_worker][compute.block]->floats();
    // Steps of one micro-batch have the same gradient as those of several.
    AddSimulatedGradient(world_.options, core_->NumberOf(compute), compute.clock, compute.block,
                         weights_[compute.block], pool_.has_value() ? kMicroBatches : 1, gradient);
    core_->share().sums.loss += gradient[0];
  }
  TUG_CHECK(core_->Finish(core_->OnComputeDone()).ok());
}

absl::Duration SimulatedWorker::MostTime(const Compute& compute) const {
  const Straggler straggler(config_);
  const uint32_t virtual_worker = core_->NumberOf(compute);
  const absl::Duration most = world_.options.max_compute;
  absl::Duration time = most + straggler.Slowdown(virtual_worker, most);
  if (compute.phase == ComputePhase::kBackward && compute.block == 0) {
    time += straggler.Pause(compute.clock, virtual_worker);
  }
  return time;
}

// ---- actions of the core ----

void SimulatedWorker::SetSchedule(const ExchangeSchedule& schedule) {
  schedule_ = schedule;
  exchange_->SetSchedule(schedule);
  ++schedule_changes_;
}

void SimulatedWorker::Pull(PullRequest request, bool) {
  request.destination = weights_[request.block];
  exchange_->Pull(std::move(request));
}

bool SimulatedWorker::TakeWeights(uint32_t block) {
  if (!exchange_->open().IsPulled(block, 0)) return false;
  const OpenRequests::Versions versions = exchange_->open().PulledVersions(block);
  if (world_.options.watch != nullptr) {
    world_.options.watch->OnPulled(node_id_, block, versions.lowest, weights_[block]);
  }
  versions_[block] = StepOfVersion(config_, versions.lowest);
  TUG_CHECK(core_->OnWeights(block, versions).ok());
  return true;
}

// Computations with dropped weights give NaN.
absl::Status SimulatedWorker::Drop(const DropOrder& order) {
  if (order.open) exchange_->GiveUpPull(order.block);
  std::fill(weights_[order.block].begin(), weights_[order.block].end(),
            std::numeric_limits<float>::quiet_NaN());
  return absl::OkStatus();
}

void SimulatedWorker::Push(const Compute& compute, const PushOrder& order) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][order.block];
  const uint32_t virtual_worker = core_->NumberOf(compute);
  const Lease lease(gradient,
                    std::as_const(*gradient).floats().first(weights_[order.block].size()));
  gradient.reset();  // a new one next time: resends in flight may still read this one
  if (pool_.has_value()) pool_->OnPushed(order.block, virtual_worker);
  if (order.block == 0) {  // the step's last one
    world_.clocks[virtual_worker] = compute.clock + 1;
    ++steps_taken_[compute.virtual_worker];
  }
  exchange_->Push({order.block, virtual_worker, 1, compute.clock, order.terms, lease});
}

void SimulatedWorker::Carry(const std::vector<uint32_t>& virtual_workers,
                            const std::vector<std::optional<uint32_t>>& before) {
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients;
  std::vector<uint64_t> steps_taken;
  for (const std::optional<uint32_t>& had : before) {
    if (had.has_value()) {
      gradients.push_back(std::move(gradients_[*had]));
    } else {
      gradients.emplace_back(weights_.size());
    }
    steps_taken.push_back(had.has_value() ? steps_taken_[*had] : 0);
  }
  gradients_ = std::move(gradients);
  steps_taken_ = std::move(steps_taken);
  exchange_->SetCarried({virtual_workers});
}

absl::Status SimulatedWorker::SaveResiduals(const ResidualOrder& order) {
  const std::vector<SegmentResidual> copy =
      exchange_->machine().CopyResiduals(order.virtual_worker);
  parts_->AddOlder(order);
  CheckpointPart part = NewestPart(order, absl::ZeroDuration());
  if (!copy.empty()) {
    part.set_file(absl::StrCat("run ", world_.store.runs, ", timeline ", timeline_, ", view ",
                               order.view, ", step ", part.version(), ", virtual worker ",
                               order.virtual_worker));
    SimulatedStore::Residual& stored = world_.store.residuals[part.file()];
    stored = {.virtual_worker = order.virtual_worker};
    for (const SegmentResidual& residual : copy) {
      const std::span<const float> values = residual.values.floats();
      stored.segments[residual.segment].assign(values.begin(), values.end());
    }
  }
  parts_->Add(std::move(part));
  return absl::OkStatus();
}

StepReport SimulatedWorker::EndStep(uint64_t, uint64_t) {
  StepReport report;
  report.set_step_seconds(absl::ToDoubleSeconds(world_.time.Now() - step_began_));
  step_began_ = world_.time.Now();
  return report;
}

double SimulatedWorker::ResidualSquares(uint32_t virtual_worker) const {
  const std::span<const double> squares = exchange_->machine().residual_squares();
  return virtual_worker < squares.size() ? squares[virtual_worker] : 0;
}

void SimulatedWorker::Collect(SimulationResult& result) {
  if (core_ == nullptr) return;  // the job ended before it began
  HeartbeatRequest unconfirmed;
  board_->AddTo(unconfirmed);
  CountSkipped(unconfirmed);
  result.schedule_changes += schedule_changes_;
  exchange_->Collect(result);
  for (size_t v = 0; v < steps_taken_.size(); ++v) {
    result.steps[core_->virtual_workers()[v]] = steps_taken_[v];
  }
  result.skipped += skipped_;
  result.evaluated.push_back(evaluated_);
  result.evaluated_versions.push_back(evaluated_versions_);
}

}  // namespace tug
