// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/program_node.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "blocks/segment_table.h"
#include "blocks/worker_place.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

constexpr float kTimes = 2;  // like the micro-batches of a simulated worker

}  // namespace

void SimulatedProgram::OnView(const View& view) {
  // A job of programs has one timeline and one placement.
  if (core_ != nullptr) return exchange_->SetView(view);
  board_ = std::make_unique<ControlBoard>();
  core_ = std::make_unique<ProgramCore>(config_, *board_);
  const WorkerPlace place = PlaceOf(view, node_id_);
  virtual_worker_ = place.virtual_workers[0];
  core_->SetPlace(place);
  clocks_ = BlockClocks(BlockNames(view.blocks()), place.start_clocks[0]);
  exchange_ = std::make_unique<SimulatedExchange>(world_, config_, job_, view, node_id_, [this] {
    if (!frozen()) LookForMail();
  });
  for (uint32_t b = 0; b < world_.table.num_blocks(); ++b) {
    weights_.emplace_back(world_.table.block_elements(b));
  }
  pulls_.resize(weights_.size());
  gradients_.resize(weights_.size());
}

void SimulatedProgram::LookForMail() {
  if (exchange_ == nullptr) return;
  exchange_->Poll();
  Advance();
}

void SimulatedProgram::Tick() {
  if (exchange_ != nullptr) exchange_->Tick();
}

void SimulatedProgram::Report(HeartbeatRequest& request) {
  request.set_ready(core_ != nullptr);
  if (core_ != nullptr) board_->AddTo(request);
}

void SimulatedProgram::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  if (core_ == nullptr) return;
  core_->OnReply(reply, sent);
  Advance();
}

void SimulatedProgram::Advance() {
  while (true) {
    switch (doing_) {
      case Doing::kGate:
        if (!BeginStep()) return;
        break;
      case Doing::kPulling:
        if (!PulledAll()) return;
        doing_ = Doing::kComputing;
        After(world_.options.max_compute * 4, [this] {
          Compute();
          Advance();
        });
        return;
      case Doing::kComputing:
        return;
      case Doing::kPushing:
        if (!PushAll()) return;
        EndStep();
        break;
      case Doing::kLastPulls:
        if (!PulledAll()) return;
        core_->Finish();
        doing_ = Doing::kFinished;
        break;
      case Doing::kFinished:
        return;
    }
  }
}

bool SimulatedProgram::BeginStep() {
  switch (core_->TryBegin(clocks_.next_step())) {
    case ProgramCore::Verdict::kWait:
      return false;
    case ProgramCore::Verdict::kDone:
      if (core_->pulls_once_more()) clocks_.AllowLastPulls();
      doing_ = Doing::kLastPulls;
      break;
    case ProgramCore::Verdict::kBegin:
      clocks_.BeginStep();
      doing_ = Doing::kPulling;
      step_began_ = world_.time.Now();
      if (core_->schedule() != schedule_) {
        schedule_ = core_->schedule();
        exchange_->SetSchedule(schedule_);
        ++schedule_changes_;
      }
  }
  PullAll();
  return true;
}

void SimulatedProgram::PullAll() {
  for (uint32_t block = 0; block < pulls_.size(); ++block) {
    TUG_CHECK(clocks_.CheckMayPull(block).ok());
    pulls_[block] = clocks_.Pull(block);
    PullRequest request = core_->PullAt(block, MeaningOf(pulls_[block]).clock);
    request.destination = weights_[block];
    exchange_->Pull(std::move(request));
  }
}

bool SimulatedProgram::PulledAll() const {
  for (uint32_t block = 0; block < pulls_.size(); ++block) {
    if (!exchange_->open().IsPulled(block, MeaningOf(pulls_[block]).clock)) return false;
  }
  return true;
}

void SimulatedProgram::Compute() {
  const uint64_t slowest = *std::min_element(world_.clocks.begin(), world_.clocks.end());
  const uint64_t clock = *clocks_.step();
  if (clock > slowest) world_.max_lead = std::max(world_.max_lead, clock - slowest);
  loss_ = 0;
  for (uint32_t block = 0; block < weights_.size(); ++block) {
    clocks_.OnPulled(pulls_[block]);
    if (world_.options.watch != nullptr) {
      world_.options.watch->OnPulled(
          node_id_, block, exchange_->open().PulledVersions(block).lowest, weights_[block]);
    }
    gradients_[block] = std::make_shared<AlignedBuffer>(weights_[block].size() * sizeof(float));
    const std::span<float> out = gradients_[block]->floats();
    std::fill(out.begin(), out.end(), 0.0f);
    AddSimulatedGradient(world_.options, virtual_worker_, clock, block, weights_[block], kTimes,
                         out);
    loss_ += out[0];
  }
  to_push_.resize(weights_.size());
  std::iota(to_push_.begin(), to_push_.end(), 0);
  std::shuffle(to_push_.begin(), to_push_.end(), world_.random);
  doing_ = Doing::kPushing;
}

bool SimulatedProgram::PushAll() {
  for (; !to_push_.empty(); to_push_.pop_back()) {
    const uint32_t block = to_push_.back();
    if (!exchange_->open().IsCommitted(block, virtual_worker_)) return false;
    TUG_CHECK(clocks_.CheckMayPush(block).ok());
    PushRequest request = core_->PushAt(block, MeaningOf(clocks_.Push(block)).clock);
    request.token_count = kSimulatedTokens;
    request.gradient =
        Lease(gradients_[block],
              std::as_const(*gradients_[block]).floats().first(weights_[block].size()));
    exchange_->Push(std::move(request));
  }
  return true;
}

void SimulatedProgram::EndStep() {
  TUG_CHECK(clocks_.CheckStepComplete().ok());
  StepReport report;
  report.set_virtual_worker(virtual_worker_);
  report.set_clock(*clocks_.step());
  report.set_loss_sum(loss_);
  report.set_tokens(kSimulatedTokens);
  report.set_targets(kSimulatedTokens);
  report.set_step_seconds(absl::ToDoubleSeconds(world_.time.Now() - step_began_));
  report.set_schedule(schedule_.number);
  board_->AddStep(std::move(report));
  world_.clocks[virtual_worker_] = *clocks_.step() + 1;
  ++steps_taken_;
  clocks_.EndStep();
  doing_ = Doing::kGate;
}

void SimulatedProgram::Collect(SimulationResult& result) {
  if (core_ == nullptr) return;
  exchange_->Collect(result);
  result.schedule_changes += schedule_changes_;
  result.steps[virtual_worker_] = steps_taken_;
  if (doing_ != Doing::kFinished) return;
  std::vector<uint64_t> versions;
  for (uint32_t block = 0; block < weights_.size(); ++block) {
    versions.push_back(StepOfVersion(config_, exchange_->open().PulledVersions(block).lowest));
  }
  result.evaluated.push_back(weights_);
  result.evaluated_versions.push_back(std::move(versions));
}

}  // namespace tug
