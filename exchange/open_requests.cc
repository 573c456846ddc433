// SPDX-License-Identifier: Apache-2.0
#include "exchange/open_requests.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tug {

OpenRequests::OpenRequests(uint32_t blocks, bool frees_gradients)
    : frees_gradients_(frees_gradients), pulls_(blocks), pushes_(blocks) {}

const OpenRequests::Pushes& OpenRequests::Find(uint32_t block, uint32_t virtual_worker) const {
  static const Pushes kNone;
  const std::vector<Pushes>& pushes = pushes_[block];
  return virtual_worker < pushes.size() ? pushes[virtual_worker] : kNone;
}

void OpenRequests::Open(absl::Time now) {
  if (open_++ == 0) open_since_ = now;
}

void OpenRequests::Close(absl::Time now) {
  if (--open_ == 0) open_time_ += now - open_since_;
}

void OpenRequests::OnPush(uint32_t block, uint32_t virtual_worker, absl::Time now) {
  TUG_CHECK_LT(virtual_worker, kMaxVirtualWorkers);
  Open(now);
  std::vector<Pushes>& pushes = pushes_[block];
  if (virtual_worker >= pushes.size()) pushes.resize(virtual_worker + 1);
  ++pushes[virtual_worker].open;
  if (frees_gradients_) ++pushes[virtual_worker].unreceived;
}

void OpenRequests::OnPull(uint32_t block, absl::Time now) {
  Open(now);
  pulls_[block].pulled.reset();
  ++pulls_[block].open;
}

void OpenRequests::OnEvent(BlockPulled event, absl::Time now) {
  Close(now);
  Pulls& pulls = pulls_[event.block];
  if (--pulls.open > 0 || event.superseded) return;
  pulls.pulled = {event.clock, {event.version, event.newest}};
  pulls.in_place = std::move(event.in_place);
}

absl::Status OpenRequests::OnEvent(const PushCommitted& event, absl::Time now) {
  Close(now);
  --pushes_[event.block][event.virtual_worker].open;
  if (!event.lost) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a server lost the gradient of block ", event.block, ", step ", event.clock,
                   ", after acknowledging it, and this worker no longer has it (placement.kind "
                   "ZERO2 or ZERO3): resume from the last checkpoint"));
}

void OpenRequests::OnEvent(const PushReceived& event) {
  Pushes& pushes = pushes_[event.block][event.virtual_worker];
  --pushes.unreceived;
  pushes.deferred = false;
}

void OpenRequests::OnEvent(const PushDeferred& event) {
  pushes_[event.block][event.virtual_worker].deferred = true;
}

void OpenRequests::Forget(uint32_t block) {
  pulls_[block].pulled.reset();
  pulls_[block].in_place = {};
}

bool OpenRequests::IsPulled(uint32_t block, uint64_t clock) const {
  const std::optional<Pulled>& pulled = pulls_[block].pulled;
  return pulled.has_value() && pulled->clock >= clock;
}

InPlaceWeights OpenRequests::TakeInPlace(uint32_t block) {
  return std::exchange(pulls_[block].in_place, {});
}

}  // namespace tug
