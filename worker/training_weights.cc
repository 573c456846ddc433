// SPDX-License-Identifier: Apache-2.0
// Weights of a worker: requested, awaited, bound, and with a window released.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/training_loop.h"

namespace tug {
namespace {

absl::Duration FirstPullTimeout(const JobConfig& config) {
  return 3 * absl::Milliseconds(config.comm().resend_ms());
}

absl::Status NoAnswer(uint32_t block, absl::Duration timeout) {
  return absl::UnavailableError(absl::StrCat(
      "no server has answered a pull of block ", block, " for ", absl::FormatDuration(timeout),
      ": start servers on an address that this host reaches (tug server --listen ADDRESS)"));
}

}  // namespace

// REQUIRES: nothing reads the block's weights until the new ones have arrived.
void TrainingLoop::Pull(PullRequest request, bool whole) {
  const uint32_t block = request.block;
  if (model_.queues()) model_.ReleaseWeights(static_cast<int>(block));
  weight_memory_.SetDestination(request);
  // Offloading lanes send from copies, of which there should be few. A device copies from the
  // worker's own memory, which can be pinned.
  request.allow_in_place = core_.mode().in_place &&
                           options_.config.placement().offload_dir().empty() && !model_.queues();
  whole_[block] = whole || block > 0 || !pulled_runs_.has_value();
  if (!whole_[block]) request.runs = pulled_runs_->Of(request.clock, core_.virtual_workers());
  exchange_.Pull(std::move(request));
}

// Answers orders to pause while waiting: the weights may depend on a worker that paused one step
// behind, and continues only after the coordinator has this worker's answer.
absl::Status TrainingLoop::WaitForWeights(uint32_t block) {
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = core_.clock()});
  const absl::Time begin = time_.Now();
  while (true) {
    ASSIGN_OR_RETURN(const bool pulled, exchange_.WaitPulled(block, 0, kOrdersInterval));
    if (pulled) break;
    const uint32_t view = core_.view();
    RETURN_IF_ERROR(core_.RefreshOrders());
    if (core_.view() != view) return absl::OkStatus();  // the next action has changed
    const absl::Duration timeout = FirstPullTimeout(options_.config);
    if (core_.AwaitsFirstWeights() && time_.Now() - begin > timeout) {
      return NoAnswer(block, timeout);
    }
  }
  times_.AddWaiting(time_.Now() - begin);
  return TakeWeights(block);
}

absl::Status TrainingLoop::TakeWeights(uint32_t block) {
  weight_memory_.OnPulled(block, exchange_.TakeInPlace(block));
  model_.BindWeights(static_cast<int>(block), weight_memory_.ViewOf(block));
  return core_.OnWeights(block, exchange_.PulledVersions(block));
}

absl::Status TrainingLoop::Drop(const DropOrder& order) {
  if (order.open) RETURN_IF_ERROR(exchange_.GiveUpPull(order.block));
  model_.ReleaseWeights(static_cast<int>(order.block));
  weight_memory_.Drop(order.block);
  return absl::OkStatus();
}

void TrainingLoop::CountHeld() {
  peak_copy_bytes_ = std::max(peak_copy_bytes_, model_.weight_copy_bytes());
  HeldBytes held{.weights = weight_memory_.max_size_bytes() + peak_copy_bytes_};
  if (gradient_pool_.has_value()) {
    held.gradients = gradient_pool_->max_size_bytes();
  } else {
    for (const auto& gradients : gradients_) {
      for (const auto& gradient : gradients) held.gradients += gradient->size_bytes();
    }
  }
  absl::MutexLock lock(&mutex_);
  held_bytes_.weights = held.weights;
  held_bytes_.gradients = std::max(held_bytes_.gradients, held.gradients);
}

HeldBytes TrainingLoop::held() const {
  absl::MutexLock lock(&mutex_);
  return held_bytes_;
}

// For an evaluation that was not expected when the block was pulled: the job ends early, or
// evaluations go by versions. Takes no orders during the computation; none are needed, since a
// version that was served once is served again.
absl::Status TrainingLoop::WaitForWholeWeights(uint32_t block) {
  if (whole_[block]) return absl::OkStatus();
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = core_.clock()});
  const absl::Time begin = time_.Now();
  core_.PullWhole(block);
  while (true) {
    RETURN_IF_ERROR(board_.cancelled());
    ASSIGN_OR_RETURN(const bool pulled, exchange_.WaitPulled(block, 0, kOrdersInterval));
    if (pulled) break;
  }
  times_.AddWaiting(time_.Now() - begin);
  return TakeWeights(block);
}

}  // namespace tug
