// The second half of a worker's step: from gradients to pushes and to reports.
#include <algorithm>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "worker/training_loop.h"

namespace tug {

// ---- gradients that are clipped here ----

std::span<float> TrainingLoop::GradientOf(const Compute& compute, uint32_t block) {
  return gradients_[compute.virtual_worker][block]->floats().first(table_.block_elements(block));
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
  const std::span<const float> start = ViewOf(block).fp32;
  LocalSteps::Step step{.clock = compute.clock, .local_step = compute.local_step};
  if (factor.has_value()) step.gradient_scale = *factor / static_cast<float>(tokens);
  local_steps_->Update(compute.virtual_worker, block, step, gradient, start);
  if (IsLastLocalStep(compute)) {
    local_steps_->Difference(compute.virtual_worker, block, start, gradient);
  }
}

// ---- pushes and pulls ----

absl::Status TrainingLoop::CarryOut(const Compute& compute, const StepEffects& effects) {
  // Nothing reads these weights any more: the server may use their memory for the next version.
  if (effects.drop.has_value()) RETURN_IF_ERROR(DropWeights({.block = *effects.drop}));
  if (effects.push.has_value()) {
    held_.push_back({*effects.push, effects.pull});
    if (!clips_ || !clip_.global() || effects.virtual_worker_done) {
      for (const HeldPush& push : held_) PushAndPull(compute, push);
      held_.clear();
    }
  }
  if (effects.virtual_worker_done) {
    step_shares_.push_back({compute.virtual_worker, std::exchange(share_, {})});
    RETURN_IF_ERROR(SaveResidualsAt(compute.virtual_worker, compute.clock + 1));
  }
  if (effects.step_done) ReportStep(compute.clock);
  return absl::OkStatus();
}

void TrainingLoop::PushAndPull(const Compute& compute, const HeldPush& push) {
  // Nothing reads these weights any more: the server may use their memory for the next version.
  if (push.pull.has_value()) weights_[push.block].in_place = {};
  Push(compute, push.block);
  if (push.pull.has_value()) Pull(*push.pull, EvaluationDue(push.pull->clock));
}

void TrainingLoop::Push(const Compute& compute, uint32_t block) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  PushRequest request{.block = block,
                      .virtual_worker = virtual_worker,
                      .virtual_worker_count = 1,
                      .clock = compute.clock,
                      .token_count = TermsOf(share_),
                      .gradient = Lease(gradient, GradientOf(compute, block))};
  if (block == 0 && pushed_runs_.has_value() && rows_suffice_) {
    request.runs = pushed_runs_->Of(compute.clock, {&virtual_worker, 1});
  }
  if (encoded_.has_value()) request.frames = encoded_->Take(virtual_worker, block);
  exchange_.Push(std::move(request));
  if (!gradient_pool_.has_value()) return;
  gradient.reset();  // the pool knows when it is free
  gradient_pool_->OnPushed(block, virtual_worker);
}

// After local steps, differences are averaged: each counts as one.
uint64_t TrainingLoop::TermsOf(const Share& share) const {
  return local_ > 1 ? 1 : share.sums.targets;
}

// ---- what pushes leave out ----

absl::StatusOr<std::vector<SegmentResidual>> TrainingLoop::CopyResiduals(uint32_t virtual_worker) {
  return encoded_.has_value() ? encoded_->encoder().CopyResiduals(virtual_worker)
                              : exchange_.CopyResiduals(virtual_worker);
}

absl::Status TrainingLoop::SaveResiduals(uint32_t index, const std::vector<uint64_t>& due) {
  if (options_.residuals == nullptr || due.empty()) return absl::OkStatus();
  const uint32_t virtual_worker = options_.virtual_workers[index];
  const auto came = came_in_view_.find(virtual_worker);
  const absl::Time begin = time_.Now();
  if (!options_.residuals->AwaitIdle()) return absl::OkStatus();  // cancelled, as the loop is
  ASSIGN_OR_RETURN(std::vector<SegmentResidual> copy, CopyResiduals(virtual_worker));
  for (size_t i = 0; i + 1 < due.size(); ++i) {
    options_.residuals->Add({.version = due[i], .virtual_worker = virtual_worker});
  }
  options_.residuals->Add({.version = due.back(),
                           .virtual_worker = virtual_worker,
                           .view = came == came_in_view_.end() ? options_.view : came->second,
                           .pause = time_.Now() - begin,
                           .residuals = std::move(copy)});
  return absl::OkStatus();
}

absl::Status TrainingLoop::SaveResidualsAt(uint32_t index, uint64_t clock) {
  if (options_.residuals == nullptr) return absl::OkStatus();
  return SaveResiduals(
      index, due_residuals_.AtClock(options_.virtual_workers[index], clock, orders_.final_version));
}

// ---- reports ----

void TrainingLoop::Share::Add(const LossSums& more) {
  sums.loss += more.loss;
  sums.targets += more.targets;
  sums.correct += more.correct;
}

void TrainingLoop::ReportStep(uint64_t clock) {
  StepReport report = times_.End(clock);
  report.set_schedule(schedule_.number);
  uint64_t tokens = 0;
  for (const StepShare& done : std::exchange(step_shares_, {})) {
    const uint32_t virtual_worker = options_.virtual_workers[done.virtual_worker];
    const auto terms = static_cast<double>(std::max<uint64_t>(TermsOf(done.share), 1));
    report.set_virtual_worker(virtual_worker);
    const double squares = encoded_.has_value()
                               ? encoded_->encoder().ResidualSquares(virtual_worker)
                               : exchange_.ResidualSquares(virtual_worker);
    report.set_residual_squares(squares / (terms * terms));
    report.set_loss_sum(done.share.sums.loss);
    report.set_targets(done.share.sums.targets);
    report.set_correct(done.share.sums.correct);
    report.set_tokens(done.share.tokens);
    tokens += done.share.tokens;
    board_.AddStep(report);
  }
  if (options_.totals != nullptr) {
    options_.totals->Add({.seconds = report.step_seconds(),
                          .compute_seconds = report.compute_seconds(),
                          .wait_seconds = report.wait_seconds(),
                          .communication_seconds = report.communication_seconds(),
                          .straggle_seconds = report.straggle_seconds(),
                          .tokens = tokens});
  }
  stepped_ = true;
}

absl::Status TrainingLoop::ReportSkipped() {
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
    RETURN_IF_ERROR(SaveResidualsAt(skipped.virtual_worker, skipped.end));
  }
  return absl::OkStatus();
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
