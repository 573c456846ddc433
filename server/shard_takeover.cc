// A new placement within a timeline: what a shard has of its segments from the one before.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/shard.h"

namespace tug {

std::span<float> Shard::weights(uint32_t segment) {
  if (states_[segment] == nullptr) return copies_.weights(segment);
  return weights_.weights(segment, version(segment));
}

std::span<float> Shard::m(uint32_t segment) {
  return states_[segment] == nullptr ? copies_.m(segment) : weights_.m(segment);
}

std::span<float> Shard::v(uint32_t segment) {
  return states_[segment] == nullptr ? copies_.v(segment) : weights_.v(segment);
}

std::optional<HeldSegment> Shard::Held(uint32_t segment) const {
  if (const SegmentState* const state = states_[segment].get(); state != nullptr) {
    HeldSegment held = weights_.Held(segment, state->version);
    if (state->next.has_value()) held.clocks = state->next->all();
    held.norm = state->norm;
    return held;
  }
  return copies_.has(segment) ? copies_.Held(segment) : std::nullopt;
}

// What stays where it is changes hands; the rest is copied.
absl::Status Shard::TakeSegments(Shard* before) {
  std::vector<HeldSegment> held;
  std::vector<NormLedger::OwnSegment> norms;
  uint64_t least = ~uint64_t{0};
  for (const uint32_t id : owned_) {
    const std::optional<HeldSegment> had = before == nullptr ? std::nullopt : before->Held(id);
    if (!had.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("lane ", options_.lane, " is to own segment ", id,
                       " and has no copy of it; start again from the last checkpoint"));
    }
    held.push_back(*had);
    norms.push_back({id, had->version, had->norm});
    least = std::min(least, had->version);
    SegmentState& state = *states_[id];
    state.version = had->version;
    state.norm = had->norm;
    if (state.next.has_value()) state.next->Set(had->clocks);
  }
  for (const uint32_t id : copies_.segments()) {
    if (before == nullptr) {
      copies_.Forget(id);
    } else if (before->states_[id] != nullptr) {
      copies_.Set(id, *before->Held(id));
    } else {
      copies_.TakeFrom(before->copies_, id);
    }
  }
  if (!weights_.TakeUp(held, before == nullptr ? nullptr : &before->weights_) ||
      (ledger_.has_value() && !ledger_->TakeUp(norms, options_.start_version))) {
    return absl::FailedPreconditionError(
        absl::StrCat("lane ", options_.lane, " is to own segments that do not fit together; start ",
                     "again from the last checkpoint"));
  }
  if (!owned_.empty() && !update_per_push_) admission_.StartAt(least);
  return absl::OkStatus();
}

absl::Status Shard::TakeFrom(Shard* before, absl::Time now) {
  TUG_CHECK(!std::exchange(started_, true));
  if (options_.sync.policy() == SyncConfig::BACKUP) {
    return absl::FailedPreconditionError(
        "with sync.policy backup segments stay where they are; use another policy");
  }
  if (before != nullptr && before->options_.timeline != options_.timeline) before = nullptr;
  now_ = now;
  if (before != nullptr && !std::exchange(before->started_, true)) before->weights_.Start();
  if (const absl::Status taken = TakeSegments(before); !taken.ok()) return taken;
  if (before != nullptr) {
    live_ = before->live_;
    counters_ = before->counters_;
    final_version_ = before->final_version_;
    final_clocks_ = before->final_clocks_;
    start_snapshot_ = before->start_snapshot_;
  }
  for (const uint32_t id : owned_) {
    const uint64_t start = options_.start_version;
    if (start_snapshot_ && states_[id]->version == start * (update_per_push_ ? live_.size() : 1)) {
      Snapshot(id, start);
    }
  }
  EnterView(view_);
  SetLive(LiveSet(live_));
  if (!update_per_push_) {
    for (const uint32_t id : owned_) MaybeSnapshot(id);
  }
  if (replication_.has_value()) replication_->AskAll(now);
  Replicate();
  return absl::OkStatus();
}

}  // namespace tug
