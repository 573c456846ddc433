// Snapshots of a lane's segments, and how far each virtual worker has come.
#include <algorithm>

#include "base/check.h"
#include "server/shard.h"

namespace tug {

// Of the steps of the job that a segment completes, those of the interval and the last one. Where
// every push is an update, step k is complete with S k of them, whosesoever; the last one when
// nothing more can come, which may be a few more. It is taken once: not again at that step's own
// multiple of S, whose state would be another one.
void Shard::MaybeSnapshot(uint32_t segment) {
  SegmentState& state = *states_[segment];
  std::optional<uint64_t> step;
  if (!update_per_push_) {
    const uint64_t interval = options_.checkpoint_interval;
    const bool due =
        (interval > 0 && state.version % interval == 0) || state.version == final_version_;
    if (due) step = state.version;
  } else if (!state.final && IsFinal(state)) {
    state.final = true;
    ++finals_;
    step = final_version_;
  } else {
    const uint64_t interval = options_.checkpoint_interval * options_.virtual_workers;
    const uint64_t at = state.version / options_.virtual_workers;
    const bool due = interval > 0 && state.version % interval == 0 &&
                     (options_.last_step == 0 || at < options_.last_step);
    if (due) step = at;
  }
  if (step.has_value() && state.snapshot_version != *step) Snapshot(segment, *step);
}

bool Shard::IsFinal(const SegmentState& state) const {
  if (final_clocks_.empty()) return false;
  for (uint32_t vw = 0; vw < live_.size(); ++vw) {
    if (live_.has(vw) && state.next->next(vw) < final_clocks_[vw]) return false;
  }
  return true;
}

void Shard::Snapshot(uint32_t segment, uint64_t version) {
  SegmentState& state = *states_[segment];
  state.snapshot_version = version;
  snapshot_clocks_.clear();
  if (update_per_push_) {
    snapshot_clocks_.push_back(state.version);
    snapshot_clocks_.insert(snapshot_clocks_.end(), state.next->all().begin(),
                            state.next->all().end());
  }
  sinks_.snapshot({segment, version, weights_.LeaseWeights(segment, state.version), m(segment),
                   v(segment), snapshot_clocks_});
}

void Shard::SnapshotStart() {
  start_snapshot_ = true;
  for (const uint32_t id : owned_) Snapshot(id, options_.start_version);
}

void Shard::SetFinalVersion(uint64_t version) {
  if (update_per_push_ || final_version_ == version) return;
  final_version_ = version;
  for (const uint32_t id : owned_) MaybeSnapshot(id);
}

void Shard::SetFinalClocks(std::span<const uint64_t> clocks, uint64_t version, absl::Time now) {
  if (!update_per_push_ || clocks.size() != options_.virtual_workers) return;
  if (version == final_version_ &&
      std::equal(clocks.begin(), clocks.end(), final_clocks_.begin(), final_clocks_.end())) {
    return;
  }
  now_ = now;
  final_version_ = version;
  final_clocks_.assign(clocks.begin(), clocks.end());
  for (const uint32_t id : owned_) MaybeSnapshot(id);
  AnswerAllWaiting();
}

std::vector<uint64_t> Shard::Clocks() const {
  std::vector<uint64_t> clocks(options_.virtual_workers, VectorClock::kNever);
  for (const uint32_t id : owned_) {
    const SegmentState& state = *states_[id];
    for (uint32_t vw = 0; vw < clocks.size(); ++vw) {
      clocks[vw] = std::min(clocks[vw], update_per_push_ ? state.next->next(vw) : state.version);
    }
  }
  return clocks;
}

void Shard::SetView(uint32_t view, const LiveSet& live, absl::Time now) {
  now_ = now;
  if (view != view_) EnterView(view);
  SetLive(live);
}

void Shard::EnterView(uint32_t view) {
  view_ = view;
  early_.Clear();
  admission_.ForgetAll();
  open_pushes_.Clear();
  waiting_pulls_.Clear();
  if (cache_.has_value()) cache_->SetView(view_);
  if (served_.has_value()) served_->Clear();
  if (ledger_.has_value()) ExchangeNormsAgain();
  for (const uint32_t id : copies_.segments()) SayCopied(id, 0);
  if (replication_.has_value()) replication_->AskAgain(now_);
  Replicate();
}

void Shard::SetLive(const LiveSet& live) {
  TUG_CHECK_EQ(live.size(), options_.virtual_workers);
  live_ = live;
  admission_.SetSpare(policy_->spare() + live_.size() - live_.count());
  summed_.clear();
  for (const uint32_t id : owned_) {
    SegmentState& state = *states_[id];
    if (update_per_push_) {
      state.next->Recount();
      MaybeSnapshot(id);
    } else if (!state.sum.complete() && policy_->Closes(LiveArrived(state), live_.count())) {
      state.sum.Seal();
      admission_.Changed(id);
      summed_.push_back(id);
    }
  }
  for (const uint32_t id : summed_) OnLocalSum(id);
  if (update_per_push_) AnswerAllWaiting();  // they wait for the slowest of those that live
  AskForDeferred();
  Replicate();
}

}  // namespace tug
