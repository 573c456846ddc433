// The second half of a worker's step: from gradients to pushes, to pulls of the next weights, and
// to reports.
#include <algorithm>
#include <span>
#include <utility>

#include "exchange/worker_place.h"
#include "kernels/bf16.h"
#include "worker/training_loop.h"

namespace tug {
namespace {

std::span<kernels::Bf16> Bf16Elements(AlignedBuffer& buffer) {
  return {reinterpret_cast<kernels::Bf16*>(buffer.data()),
          buffer.size_bytes() / sizeof(kernels::Bf16)};
}

}  // namespace

// ---- gradients that are clipped here ----

std::span<float> TrainingLoop::GradientOf(const Compute& compute, uint32_t block) {
  return gradients_[compute.virtual_worker][block]->floats();
}

void TrainingLoop::OnGradient(const Compute& compute) {
  clip_.Add(compute.block, GradientOf(compute, compute.block));
  if (!clip_.global()) return Settle(compute, compute.block);
  if (compute.block > 0) return;
  for (uint32_t block = table_.num_blocks(); block-- > 0;) Settle(compute, block);
}

void TrainingLoop::Settle(const Compute& compute, uint32_t block) {
  const uint64_t tokens = share_.sums.targets - share_.before_local;
  const std::span<float> gradient = GradientOf(compute, block);
  if (!local_steps_.has_value()) {
    const bool finite = clip_.Apply(block, tokens, gradient);
    if (block == 0) rows_suffice_ = finite;
    return;
  }
  const std::optional<float> factor = clip_.Factor(block, tokens);
  const std::span<const float> start = ViewOf(weights_[block]).fp32;
  LocalSteps::Step step{.clock = compute.clock, .local_step = compute.local_step};
  if (factor.has_value()) step.gradient_scale = *factor / static_cast<float>(tokens);
  local_steps_->Update(compute.virtual_worker, block, step, gradient, start);
  if (IsLastLocalStep(compute)) {
    local_steps_->Difference(compute.virtual_worker, block, start, gradient);
  }
}

// ---- pushes and pulls ----

void TrainingLoop::CarryOut(const Compute& compute, const StepEffects& effects) {
  if (effects.push.has_value()) {
    held_.push_back({*effects.push, effects.pull});
    if (!clips_ || !clip_.global() || effects.virtual_worker_done) {
      for (const HeldPush& push : held_) PushAndPull(compute, push);
      held_.clear();
    }
  }
  if (effects.virtual_worker_done) {
    step_shares_.push_back({compute.virtual_worker, std::exchange(share_, {})});
    SaveResidualsAt(compute.virtual_worker, compute.clock + 1);
  }
  if (effects.step_done) ReportStep(compute.clock);
}

void TrainingLoop::PushAndPull(const Compute& compute, const HeldPush& push) {
  // Nothing reads these weights any more: the server may use their memory for the next version.
  if (push.pull.has_value()) weights_[push.block].in_place = {};
  Push(compute, push.block);
  if (push.pull.has_value()) Pull(*push.pull, EvaluationDue(push.pull->clock));
}

void TrainingLoop::Push(const Compute& compute, uint32_t block) {
  const std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  PushRequest request{.block = block,
                      .virtual_worker = virtual_worker,
                      .virtual_worker_count = 1,
                      .clock = compute.clock,
                      .token_count = TermsOf(share_),
                      .gradient = Lease(gradient, std::as_const(*gradient).floats())};
  if (block == 0 && pushed_runs_.has_value() && rows_suffice_) {
    request.runs = pushed_runs_->Of(compute.clock, {&virtual_worker, 1});
  }
  exchange_.Push(std::move(request));
}

// After local steps, differences are averaged: each counts as one.
uint64_t TrainingLoop::TermsOf(const Share& share) const {
  return local_ > 1 ? 1 : share.sums.targets;
}

bool TrainingLoop::EvaluationDue(uint64_t version) const {
  const uint64_t interval = options_.config.train().eval_interval();
  return (interval > 0 && version % interval == 0) || version == orders_.final_version;
}

// REQUIRES: nothing reads the block's weights any more, until these have arrived.
void TrainingLoop::Pull(const PullOrder& order, bool whole) {
  BlockWeights& weights = weights_[order.block];
  weights.in_place = {};
  // Under bsp there is but one version that fits; elsewhere lanes serve the newest.
  const bool newest = (mode_.update_per_push && !order.exact) || mode_.skips_steps;
  PullRequest request{
      .block = order.block,
      .want = newest ? Want::kAtLeast : Want::kExact,
      .version = order.clock,
      // What offloading lanes send lies in copies, of which there should be few.
      .allow_in_place = mode_.in_place && options_.config.placement().offload_dir().empty(),
      .virtual_workers =
          FirstRun(std::span(options_.virtual_workers).subspan(order.first_taker, order.takers))};
  if (bf16_weights_) {
    request.bf16_destination = Bf16Elements(weights.own);
  } else {
    request.destination = weights.own.floats();
  }
  weights.whole = whole || order.exact || order.block > 0 || !pulled_runs_.has_value();
  if (!weights.whole) request.runs = pulled_runs_->Of(order.clock, options_.virtual_workers);
  exchange_.Pull(std::move(request));
}

// ---- what pushes leave out ----

void TrainingLoop::SaveResiduals(uint32_t index, const std::vector<uint64_t>& due) {
  if (options_.residuals == nullptr || due.empty()) return;
  const uint32_t virtual_worker = options_.virtual_workers[index];
  const auto came = came_in_view_.find(virtual_worker);
  const absl::Time begin = time_.Now();
  if (!options_.residuals->AwaitIdle()) return;
  absl::StatusOr<std::vector<SegmentResidual>> copy = exchange_.CopyResiduals(virtual_worker);
  if (!copy.ok()) return;  // cancelled
  for (size_t i = 0; i + 1 < due.size(); ++i) {
    options_.residuals->Add({.version = due[i], .virtual_worker = virtual_worker});
  }
  options_.residuals->Add({.version = due.back(),
                           .virtual_worker = virtual_worker,
                           .view = came == came_in_view_.end() ? options_.view : came->second,
                           .pause = time_.Now() - begin,
                           .residuals = *std::move(copy)});
}

void TrainingLoop::SaveResidualsAt(uint32_t index, uint64_t clock) {
  if (options_.residuals == nullptr) return;
  SaveResiduals(
      index, due_residuals_.AtClock(options_.virtual_workers[index], clock, orders_.final_version));
}

// ---- reports ----

void TrainingLoop::ReportStep(uint64_t clock) {
  StepReport report = times_.End(clock);
  report.set_schedule(schedule_.number);
  for (const StepShare& done : std::exchange(step_shares_, {})) {
    const uint32_t virtual_worker = options_.virtual_workers[done.virtual_worker];
    const auto terms = static_cast<double>(std::max<uint64_t>(TermsOf(done.share), 1));
    report.set_virtual_worker(virtual_worker);
    report.set_residual_squares(exchange_.ResidualSquares(virtual_worker) / (terms * terms));
    report.set_loss_sum(done.share.sums.loss);
    report.set_targets(done.share.sums.targets);
    report.set_correct(done.share.sums.correct);
    report.set_tokens(done.share.tokens);
    board_.AddStep(report);
  }
  stepped_ = true;
}

void TrainingLoop::ReportSkipped() {
  for (const SkippedSteps& skipped : machine_.TakeSkipped()) {
    share_ = {};
    step_shares_.clear();
    for (uint64_t clock = skipped.first; clock < skipped.end; ++clock) {
      StepReport report;
      report.set_virtual_worker(options_.virtual_workers[skipped.virtual_worker]);
      report.set_clock(clock);
      report.set_skipped(true);
      report.set_schedule(schedule_.number);
      board_.AddStep(std::move(report));
    }
    SaveResidualsAt(skipped.virtual_worker, skipped.end);
  }
}

void TrainingLoop::ReportEval(const Compute& compute, bool final) {
  EvalReport report;
  report.set_virtual_worker(options_.virtual_workers[compute.virtual_worker]);
  report.set_version(compute.clock);
  const Share share = std::exchange(share_, {});
  report.set_loss_sum(share.sums.loss);
  report.set_targets(share.sums.targets);
  report.set_correct(share.sums.correct);
  report.set_final(final);
  board_.AddEval(std::move(report));
}

}  // namespace tug
