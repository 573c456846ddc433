// SPDX-License-Identifier: Apache-2.0
// Memory for gradients: allocated, awaited, bound.
#include <optional>

#include "base/status_macros.h"
#include "worker/training_loop.h"

namespace tug {

absl::Status TrainingLoop::BindGradients(const Compute& compute, bool last_block) {
  // The step's first micro-batch has bound them.
  if (compute.micro_batch > 0 || compute.local_step > 0) return absl::OkStatus();
  // A tied head adds its part to the embedding's gradient, which is complete much later.
  const std::optional<int> tied = model_.tied_block();
  if (last_block && tied.has_value()) {
    RETURN_IF_ERROR(BindGradient(compute, static_cast<uint32_t>(*tied)));
  }
  const bool bound = !last_block && tied == static_cast<int>(compute.block);
  return bound ? absl::OkStatus() : BindGradient(compute, compute.block);
}

// The block's gradient of the previous step is committed by now, or this step's weights would not
// have arrived. WaitCommitted is a guard, which blocks only if an acknowledgement was lost.
absl::Status TrainingLoop::BindGradient(const Compute& compute, uint32_t block) {
  const uint32_t virtual_worker = core_.NumberOf(compute);
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  if (gradient_pool_.has_value()) {
    ASSIGN_OR_RETURN(gradient, TakeGradient(block));
  } else {
    // The deferred computation must not wait too.
    if (!exchange_.IsCommitted(block, virtual_worker)) RETURN_IF_ERROR(FinishQueued());
    RETURN_IF_ERROR(exchange_.WaitCommitted(block, virtual_worker));
    // A resend in flight keeps its bytes.
    if (!IsOnlyOwner(gradient)) gradient = NewBuffer(gradient->size_bytes());
  }
  model_.BindGradient(static_cast<int>(block), GradientOf(compute, block));
  if (encoded_.has_value()) encoded_->Bind(virtual_worker, block);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<AlignedBuffer>> TrainingLoop::TakeGradient(uint32_t block) {
  std::shared_ptr<AlignedBuffer> buffer = gradient_pool_->Take(block);
  if (buffer != nullptr) return buffer;
  RETURN_IF_ERROR(FinishQueued());  // its push may be the one to wait for
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = core_.clock()});
  const absl::Time begin = time_.Now();
  while (buffer == nullptr) {
    const std::optional<GradientPool::Pushed> oldest = gradient_pool_->oldest();
    activity_.Set(CurrentActivity::Doing::kWaiting, oldest.has_value() ? oldest->block : block,
                  core_.clock(), begin);
    bool received = false;
    if (oldest.has_value()) {
      ASSIGN_OR_RETURN(
          received, exchange_.WaitReceived(oldest->block, oldest->virtual_worker, kOrdersInterval));
    }
    buffer = gradient_pool_->TakeAfter(block, received, !core_.WaitsForRoomOnLanes());
  }
  times_.AddWaiting(time_.Now() - begin);
  NoteActivity();
  return buffer;
}

}  // namespace tug
