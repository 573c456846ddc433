// SPDX-License-Identifier: Apache-2.0
#include "server/shard/summed_pushes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/check.h"
#include "base/elapsed.h"
#include "config/push_plan.h"

namespace tug {
namespace {

PushAdmission::Options AdmissionOptions(const ShardContext& context, size_t owned) {
  const ShardOptions& options = context.options;
  return {.parking_bytes = options.parking_bytes,
          .start_clock = options.start_version,
          .max_deferred = size_t{2} * options.virtual_workers * owned,
          .spare = context.policy->spare(),
          .ask_for_closed = context.policy->spare() > 0,
          .repeat_after = options.resend_after};
}

}  // namespace

SummedPushes::SummedPushes(const ShardParts& parts)
    : PushHandler(parts),
      clip_(LaneClipOf(context_.options.sync, context_.options.optimizer)),
      admission_(AdmissionOptions(context_, own_.ids().size()), context_.table, own_.states(),
                 own_.ids()),
      open_pushes_(context_.table.size(), context_.table.num_blocks()) {
  if (clip_ != OptimizerConfig::OFF) {
    norms_.emplace(context_, clip_ == OptimizerConfig::GLOBAL ? NormLedger::Scope::kAll
                                                              : NormLedger::Scope::kBlock);
  }
  if (!context_.options.reduction.has_value()) return;
  TUG_CHECK_EQ(own_.ids().size(), size_t{context_.table.size()});
  reduction_.emplace(
      *context_.options.reduction, context_.table,
      LaneReduction::Sinks{{.send = context_.sinks.send, .wake = context_.sinks.wake},
                           context_.options.new_buffer,
                           [this](const LaneReduction::Reduced& reduced) { OnReduced(reduced); }});
}

// ---- arriving pushes ----

SummedPushes::Fresh SummedPushes::Examine(const WireHeader& push) {
  open_segments_.clear();
  Fresh fresh;
  const uint32_t first = context_.FirstId(push);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    const SumTree& sum = own_.state(id).sum;
    switch (context_.policy->FateOf(push.virtual_worker, push.clock, own_.ClocksOf(id))) {
      case PushFate::kCommitted:
        break;
      case PushFate::kDropped:
        ++fresh.dropped;
        break;
      case PushFate::kEarly:
      case PushFate::kImpossible:
        fresh.valid = false;
        break;
      case PushFate::kTake:
        const bool added = sum.Covers(push.virtual_worker, push.virtual_worker_count);
        // The sum will close without this push, once norms and replicas have arrived. Under BACKUP
        // it is dropped. Otherwise a placement change may still need it, so it gets no final answer
        // yet.
        const bool sealed = !added && sum.complete();
        if (sealed && context_.policy->spare() > 0) {
          ++fresh.dropped;
          break;
        }
        fresh.valid = fresh.valid && own_.weights().RunIsAt(id, push.clock);
        open_segments_.push_back(id);
        if (!added && !sealed) ++fresh.missing;
    }
  }
  return fresh;
}

void SummedPushes::OnPush(Message message) {
  const WireHeader header = message.header;
  const bool announced = header.codec == Codec::kNone && message.payload.size_bytes() == 0;
  if (announced) return OnAnnounced(header);
  if (!NamesOwnPush(header)) {
    return context_.Malformed(header, "is not a valid push to segments of this lane");
  }
  const Fresh fresh = Examine(header);
  if (!fresh.valid) {
    return context_.Malformed(header, "has a clock that no worker can have reached");
  }
  const PushKey key = KeyOf(header);
  if (AnswerKnown(key, fresh)) return;
  if (open_pushes_.in_block(header.block) >= context_.MostOpen(header.block)) {
    return context_.Malformed(header, "exceeds the pushes that virtual workers can have open");
  }
  const absl::Cleanup release = [this] { push_.Release(); };
  if (!Take(std::move(message))) return;
  const bool own = push_.own() || context_.options.senders_let_go;
  if (!admission_.Admits(key, own)) {
    ++context_.counters.deferred;
    admission_.Defer(key, own);
    return context_.ReplyToPush(MessageKind::kDeferred, key);
  }
  admission_.Forget(key);
  open_pushes_.Add(key, open_segments_);
  AddToSums(key);
  // If all its segments have closed, kCommitted has been sent instead.
  const bool open = std::any_of(open_segments_.begin(), open_segments_.end(),
                                [&](uint32_t id) { return own_.state(id).version == key.clock; });
  if (open) context_.ReplyToPush(MessageKind::kReceived, key);
}

// Requests the push now, or defers it.
void SummedPushes::OnAnnounced(const WireHeader& header) {
  if (!Lacks(header)) return;
  const PushKey key = KeyOf(header);
  if (admission_.Announce(key, context_.now, wanted_)) return;
  ++context_.counters.deferred;
  context_.ReplyToPush(MessageKind::kDeferred, key);
}

bool SummedPushes::AnswerKnown(const PushKey& key, const Fresh& fresh) {
  if (open_segments_.empty()) {
    AnswerClosed(key, fresh);
    return true;
  }
  if (fresh.missing > 0) return false;
  if (!open_pushes_.Contains(key, open_segments_.front())) {
    if (open_pushes_.in_block(key.block) >= context_.MostOpen(key.block)) return false;
    open_pushes_.Add(key, open_segments_);  // of another worker, or partitioned differently
  }
  ++context_.counters.repeats;
  context_.ReplyToPush(MessageKind::kReceived, key);
  return true;
}

bool SummedPushes::Lacks(const WireHeader& push) {
  if (!NamesOwnPush(push)) {
    context_.Malformed(push, "names a push to segments that this lane does not own");
    return false;
  }
  const Fresh fresh = Examine(push);
  if (!fresh.valid) {
    context_.Malformed(push, "names a push with a clock that no worker can have reached");
    return false;
  }
  if (AnswerKnown(KeyOf(push), fresh)) return false;
  if (fresh.missing == 0) {
    context_.Malformed(push, "names more pushes than virtual workers can have open");
  }
  return fresh.missing > 0;
}

// A push that the lane lacks never got kReceived from it: segments do not move in jobs whose
// workers ask.
void SummedPushes::OnPushAsked(const Message& message) {
  const WireHeader& header = message.header;
  if (message.payload.size_bytes() > 0) {
    return context_.Malformed(header, "queries a push, but has a payload");
  }
  if (Lacks(header)) context_.ReplyToPush(MessageKind::kDropped, KeyOf(header));
}

// Workers partition blocks alike, so a push is too late for all of its segments or for none. While
// the schedule changes it may be too late for some: it is committed with the others.
void SummedPushes::AnswerClosed(const PushKey& key, const Fresh& fresh) {
  admission_.Forget(key);
  if (fresh.dropped == key.segment_count) {
    ++context_.counters.dropped_pushes;
    return context_.ReplyToPush(MessageKind::kDropped, key);
  }
  ++context_.counters.repeats;
  context_.SendCommitted(key, key.clock + 1);
}

bool SummedPushes::AnswerIfClosed(const PushKey& key) {
  WireHeader header;
  SetPush(key, header);
  const Fresh fresh = Examine(header);
  if (!open_segments_.empty()) return false;
  AnswerClosed(key, fresh);
  return true;
}

uint32_t SummedPushes::LiveArrived(const SegmentState& state) const {
  const LiveSet& live = context_.live;
  if (live.all()) return state.sum.added();
  uint32_t arrived = 0;
  for (uint32_t vw = 0; vw < live.size(); ++vw) {
    arrived += live.has(vw) && state.sum.Covers(vw, 1) ? 1 : 0;
  }
  return arrived;
}

bool SummedPushes::Closes(uint32_t segment) {
  SegmentState& state = own_.state(segment);
  if (!context_.policy->Closes(LiveArrived(state), context_.live.count())) return false;
  if (!state.sum.complete()) state.sum.Seal();
  return true;
}

void SummedPushes::AddToSums(const PushKey& key) {
  const ShardOptions& options = context_.options;
  summed_.clear();
  TraceSpan span(options.trace, context_.EventOf(TraceKind::kSum, push_.header()));
  std::optional<ElapsedSeconds> elapsed(std::in_place, options.time,
                                        context_.counters.decode_seconds);
  for (const uint32_t id : open_segments_) {
    SegmentState& state = own_.state(id);
    if (state.sum.complete() || state.sum.Covers(key.virtual_worker, key.virtual_worker_count)) {
      continue;
    }
    Contribution part = push_.Part(id, context_.table);
    part.stays = !options.senders_let_go;
    state.sum.Add(key.virtual_worker, key.virtual_worker_count, std::move(part));
    state.tokens += push_.header().token_count;
    if (Closes(id)) summed_.push_back(id);
    admission_.Changed(id);
  }
  // From here on only the sums hold the payload: kCommitted promises that it is released.
  push_.Release();
  span.End();
  elapsed.reset();
  for (const uint32_t id : summed_) OnLocalSum(id);
}

void SummedPushes::AskForDeferred() {
  admission_.TakeWanted(context_.now, wanted_);
  for (const PushKey& key : wanted_) {
    if (context_.policy->spare() > 0 && AnswerIfClosed(key)) continue;
    context_.ReplyToPush(MessageKind::kPushWanted, key);
  }
  wanted_.clear();
}

// ---- time, views ----

void SummedPushes::OnTick() {
  admission_.OnTick(context_.now, wanted_);
  AskForDeferred();
  if (norms_.has_value()) norms_->OnTick();
}

void SummedPushes::EnterView() {
  admission_.ForgetAll();
  open_pushes_.Clear();
  if (norms_.has_value()) norms_->EnterView();
}

void SummedPushes::SetLive() {
  const LiveSet& live = context_.live;
  admission_.SetSpare(context_.policy->spare() + live.size() - live.count());
  summed_.clear();
  for (const uint32_t id : own_.ids()) {
    MaybeSnapshot(id);
    if (own_.state(id).sum.complete() || !Closes(id)) continue;
    admission_.Changed(id);
    summed_.push_back(id);
  }
  for (const uint32_t id : summed_) OnLocalSum(id);
  AskForDeferred();
}

void SummedPushes::SetFinal() {
  for (const uint32_t id : own_.ids()) MaybeSnapshot(id);
}

bool SummedPushes::RecoverState(std::span<const HeldSegment> held) {
  const auto least = std::min_element(
      held.begin(), held.end(),
      [](const HeldSegment& a, const HeldSegment& b) { return a.version < b.version; });
  if (least != held.end()) admission_.StartAt(least->version);
  return !norms_.has_value() || norms_->RecoverState(own_, held);
}

void SummedPushes::MaybeSnapshot(uint32_t segment) {
  const SegmentState& state = own_.state(segment);
  const uint64_t interval = context_.options.checkpoint_interval;
  const bool due =
      (interval > 0 && state.version % interval == 0) || state.version == context_.final_version;
  if (due && state.snapshot_version != state.version) own_.Snapshot(segment, state.version);
}

// Pushes come from the last block to the first. A block without any push is not reported: all
// workers are still computing it.
ShardActivity SummedPushes::activity() const {
  std::optional<uint32_t> begun, summed;
  const auto is_older = [this](uint32_t id, const std::optional<uint32_t>& than) {
    if (!than.has_value()) return true;
    return std::tuple(own_.state(id).version, context_.table.segment(*than).block) <
           std::tuple(own_.state(*than).version, context_.table.segment(id).block);
  };
  for (const uint32_t id : own_.ids()) {
    const SumTree& sum = own_.state(id).sum;
    if (sum.complete()) {
      if (is_older(id, summed)) summed = id;
    } else if (sum.added() > 0 && is_older(id, begun)) {
      begun = id;
    }
  }
  if (!begun.has_value() && !summed.has_value()) return {};
  const uint32_t id = begun.has_value() ? *begun : *summed;
  ShardActivity activity{.doing = ShardActivity::Doing::kUpdating,
                         .block = context_.table.segment(id).block,
                         .clock = own_.state(id).version};
  if (!begun.has_value()) return activity;
  activity.SetWaiting(context_.live, [&](uint32_t virtual_worker) {
    return !own_.state(id).sum.Covers(virtual_worker, 1);
  });
  return activity;
}

}  // namespace tug
