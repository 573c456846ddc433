// SPDX-License-Identifier: Apache-2.0
// The second half of a worker's step: gradients, pushes, residuals and times.
#include <algorithm>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "worker/training_loop.h"

namespace tug {

std::span<float> TrainingLoop::GradientOf(const Compute& compute, uint32_t block) {
  return gradients_[compute.virtual_worker][block]->floats().first(table_.block_elements(block));
}

void TrainingLoop::Push(const Compute& compute, const PushOrder& order) {
  const uint32_t block = order.block;
  // The server may reuse their memory for the next version.
  if (order.last_use) weight_memory_.EndInPlace(block);
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const uint32_t virtual_worker = core_.NumberOf(compute);
  PushRequest request{.block = block,
                      .virtual_worker = virtual_worker,
                      .virtual_worker_count = 1,
                      .clock = compute.clock,
                      .token_count = order.terms,
                      .gradient = Lease(gradient, GradientOf(compute, block))};
  if (block == 0 && pushed_runs_.has_value() && (!change_.has_value() || change_->rows_suffice())) {
    request.runs = pushed_runs_->Of(compute.clock, {&virtual_worker, 1});
  }
  if (encoded_.has_value()) request.frames = encoded_->Take(virtual_worker, block);
  exchange_.Push(std::move(request));
  if (!gradient_pool_.has_value()) return;
  gradient.reset();  // the pool tracks when it is free
  gradient_pool_->OnPushed(block, virtual_worker);
}

// ---- residuals ----

absl::Status TrainingLoop::SaveResiduals(const ResidualOrder& order) {
  const absl::Time begin = time_.Now();
  if (!options_.residuals->AwaitIdle()) return absl::OkStatus();  // cancelled, like the loop
  ASSIGN_OR_RETURN(std::vector<SegmentResidual> copy,
                   encoded_.has_value() ? encoded_->encoder().CopyResiduals(order.virtual_worker)
                                        : exchange_.CopyResiduals(order.virtual_worker));
  options_.residuals->Add({order, time_.Now() - begin, std::move(copy)});
  return absl::OkStatus();
}

double TrainingLoop::ResidualSquares(uint32_t virtual_worker) const {
  return encoded_.has_value() ? encoded_->encoder().ResidualSquares(virtual_worker)
                              : exchange_.ResidualSquares(virtual_worker);
}

// ---- times ----

StepReport TrainingLoop::EndStep(uint64_t clock, uint64_t tokens) {
  StepReport report = times_.End(clock);
  if (options_.totals != nullptr) {
    options_.totals->Add({.seconds = report.step_seconds(),
                          .compute_seconds = report.compute_seconds(),
                          .wait_seconds = report.wait_seconds(),
                          .communication_seconds = report.communication_seconds(),
                          .straggle_seconds = report.straggle_seconds(),
                          .tokens = tokens});
  }
  return report;
}

}  // namespace tug
