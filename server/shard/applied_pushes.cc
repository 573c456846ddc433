// SPDX-License-Identifier: Apache-2.0
#include "server/shard/applied_pushes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/elapsed.h"
#include "kernels/sum.h"
#include "server/pushes/push_step.h"

namespace tug {

AppliedPushes::AppliedPushes(const ShardParts& parts)
    : PushHandler(parts),
      early_(context_.table.num_blocks(),
             size_t{2} * context_.options.virtual_workers * own_.ids().size(),
             context_.options.resend_after) {
  if (copies_.replicates()) {
    queued_.emplace(context_.table.size(), context_.options.parking_bytes);
  }
}

// ---- arriving pushes ----

AppliedPushes::Fate AppliedPushes::Examine(const WireHeader& push) {
  open_segments_.clear();
  bool early = false;
  const uint32_t first = context_.FirstId(push);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    switch (context_.policy->FateOf(push.virtual_worker, push.clock, own_.ClocksOf(id))) {
      case PushFate::kTake:
        open_segments_.push_back(id);
        break;
      case PushFate::kEarly:
        early = true;
        break;
      case PushFate::kImpossible:
        return Fate::kImpossible;
      case PushFate::kCommitted:
      case PushFate::kDropped:
        break;
    }
  }
  if (early) return Fate::kEarly;
  return open_segments_.empty() ? Fate::kRepeat : Fate::kFresh;
}

bool AppliedPushes::IsEarly(const PushKey& key) const {
  const uint32_t first = context_.table.id(key.block, key.first_segment);
  for (uint32_t id = first; id < first + key.segment_count; ++id) {
    if (own_.state(id).next->next(key.virtual_worker) < key.clock) return true;
    if (queued_.has_value() && queued_->Find(id, key.virtual_worker) != nullptr) return true;
  }
  return false;
}

bool AppliedPushes::IsApplied(const PushKey& key) const {
  const uint32_t first = context_.table.id(key.block, key.first_segment);
  for (uint32_t id = first; id < first + key.segment_count; ++id) {
    if (own_.state(id).next->next(key.virtual_worker) <= key.clock) return false;
  }
  return true;
}

bool AppliedPushes::IsBeyondEnd(const WireHeader& push) const {
  return !context_.final_clocks.empty() && push.clock >= context_.final_clocks[push.virtual_worker];
}

void AppliedPushes::OnPush(Message message) {
  const WireHeader header = message.header;
  if (!NamesOwnPush(header) || header.virtual_worker_count != 1) {
    return context_.Malformed(header, "is not a valid push to segments of this lane");
  }
  const PushKey key = KeyOf(header);
  const Fate fate = Examine(header);
  // An applied push is a repeat, even after the end.
  if (fate != Fate::kRepeat && IsBeyondEnd(header)) {
    return context_.Malformed(header, "has a clock after the last step");
  }
  if (fate == Fate::kEarly) return Defer(key);
  if (fate == Fate::kImpossible) {
    return context_.Malformed(header, "has a clock that no worker can have reached");
  }
  early_.Forget(key);
  if (fate == Fate::kRepeat) {
    ++context_.counters.repeats;
    const uint64_t version = own_.state(context_.FirstId(header)).version;
    return context_.SendCommitted(key, version);
  }
  if (queued_.has_value() && AnswerIfQueued(key)) return;
  const absl::Cleanup release = [this] { push_.Release(); };
  if (!Take(std::move(message))) return;
  const ServedWeights* const served = pulls_.served();
  const bool exact =
      served == nullptr || header.version == kAnyWeightsVersion ||
      served->IsExact(header.sender, header.clock, context_.FirstId(header), header.segment_count);
  queued_.has_value() ? Queue(exact) : Apply(exact);
}

void AppliedPushes::OnPushAsked(const Message& message) {
  context_.Malformed(message.header,
                     "queries a push, but this lane applies pushes without summing them");
}

void AppliedPushes::Defer(const PushKey& key) {
  ++context_.counters.deferred;
  early_.Defer(key);
  context_.ReplyToPush(MessageKind::kDeferred, key);
}

// Applies push_ to its open segments.
void AppliedPushes::Apply(bool exact) {
  const WireHeader header = push_.header();
  for (const uint32_t id : open_segments_) {
    AddAlone(id, push_);
    uint32_t record_flags = 0;
    const SegmentUpdate update = UpdateOf(id, header, record_flags);
    ApplyTo(id, header, exact, update, record_flags);
  }
  // Release the payload first: kCommitted promises that the lane no longer reads it.
  push_.Release();
  SendCommitted(header);
  for (const uint32_t id : open_segments_) AnswerAfter(id, header.virtual_worker);
  early_.TakeWanted(
      header.block, context_.now, [this](const PushKey& other) { return IsEarly(other); }, wanted_);
}

void AppliedPushes::SendCommitted(const WireHeader& push) {
  const uint64_t oldest = own_.OldestVersion(context_.FirstId(push), push.segment_count);
  context_.SendCommitted(KeyOf(push), oldest);
}

void AppliedPushes::AskForDeferred() {
  for (const PushKey& key : wanted_) {
    context_.ReplyToPush(MessageKind::kPushWanted, key);
  }
  wanted_.clear();
}

// ---- one segment ----

void AppliedPushes::AddAlone(uint32_t segment, const PushPayload& push) {
  const ShardOptions& options = context_.options;
  Contribution part = push.Part(segment, context_.table);
  TraceEvent event = context_.EventOf(TraceKind::kDecode, push.header());
  event.first_segment = context_.table.segment(segment).index;
  event.segment_count = 1;
  event.bytes = part.payload.size_bytes();
  const TraceSpan span(part.codec == 0 ? nullptr : options.trace, event);
  const ElapsedSeconds elapsed(options.time, context_.counters.decode_seconds);
  own_.state(segment).sum.Add(0, 1, std::move(part));
}

// A push may name a version that does not exist yet, which no worker can have been served. It
// counts as the newest: dropping the push unanswered would stall everything that waits for it.
uint64_t AppliedPushes::WeightsVersion(uint32_t segment, const WireHeader& push) const {
  return std::min(push.version, own_.state(segment).version);
}

SegmentUpdate AppliedPushes::UpdateOf(uint32_t segment, const WireHeader& push,
                                      uint32_t& record_flags) {
  const SyncConfig& sync = context_.options.sync;
  const SegmentState& state = own_.state(segment);
  const uint64_t weights_version = WeightsVersion(segment, push);
  const uint64_t staleness = state.version - weights_version;
  const Segment& place = context_.table.segment(segment);
  SegmentUpdate update;
  update.step = StepOfPush(sync, context_.options.virtual_workers,
                           {.version = state.version,
                            .staleness = staleness,
                            .token_count = push.token_count,
                            .weight_decay = place.weight_decay});
  std::span<const float> gradient = state.sum.sum();
  bool finite = state.sum.first_not_finite() == SumTree::kNone;
  if (finite && WantsCompensation(sync, staleness)) {
    const std::span<const float> old =
        pulls_.served()->Weights(push.sender, segment, weights_version);
    if (old.empty()) {
      record_flags = OrderRecord::kNotCompensated;
    } else {
      const std::span<const float> weights = own_.weights().weights(segment, state.version);
      gradient = CompensateDelay(sync, {.gradient = gradient, .of = old, .weights = weights},
                                 update.step, compensated_);
      finite = kernels::AllFinite(gradient.data(), static_cast<int64_t>(gradient.size()));
    }
  }
  if (!finite) {
    NoticeSkip({.clock = push.clock,
                .block = place.block,
                .bad_virtual_worker = push.virtual_worker,
                .clip = context_.options.optimizer.clip(),
                .of_one_push = true});
    record_flags = OrderRecord::kSkipped;
    return update;
  }
  update.gradient = gradient;
  return update;
}

void AppliedPushes::ApplyTo(uint32_t segment, const WireHeader& push, bool exact,
                            const SegmentUpdate& update, uint32_t record_flags) {
  SegmentState& state = own_.state(segment);
  const uint64_t of = WeightsVersion(segment, push);
  const uint64_t staleness = state.version - of;
  own_.MakeVersion(segment, update, push.virtual_worker, push.clock);
  state.sum.Clear();
  state.min_rose = state.next->Advance(push.virtual_worker);
  ++context_.counters.updates;
  CountStaleness(context_.counters.staleness, staleness);
  if (push.version == kAnyWeightsVersion) {
    record_flags |= OrderRecord::kUntouched;
  } else if (push.version > of) {
    exact = false;
  }
  if (!exact) record_flags |= OrderRecord::kInexact;
  if (context_.sinks.record) Record(segment, push, of, record_flags);
  MaybeSnapshot(segment);
}

void AppliedPushes::Record(uint32_t segment, const WireHeader& push, uint64_t weights_version,
                           uint32_t flags) {
  if ((flags & OrderRecord::kInexact) != 0 && context_.counters.inexact_records++ == 0) {
    context_.sinks.notice({"order/inexact",
                           "a gradient was computed from weights of several versions (sync.record "
                           "ORDER): the run can be recomputed only up to this update"});
  }
  context_.sinks.record({.segment = segment,
                         .virtual_worker = push.virtual_worker,
                         .clock = push.clock,
                         .version = own_.state(segment).version,
                         .weights_version = weights_version,
                         .flags = flags});
}

void AppliedPushes::AnswerAfter(uint32_t segment, uint32_t virtual_worker) {
  // Pulls wait for the slowest virtual worker, or for pushes of their own sender. Near the end,
  // when finished virtual workers no longer count, any push may be the one.
  const bool all =
      std::exchange(own_.state(segment).min_rose, false) || !context_.final_clocks.empty();
  pulls_.LookAgain(segment, [&](const WireHeader& pull) {
    return all || pull.want == Want::kExact ||
           (virtual_worker >= pull.virtual_worker &&
            virtual_worker - pull.virtual_worker < pull.virtual_worker_count);
  });
}

// ---- replicated segments ----

bool AppliedPushes::AnswerIfQueued(const PushKey& key) {
  for (const uint32_t id : open_segments_) {
    const QueuedPushes::Push* const push = queued_->Find(id, key.virtual_worker);
    if (push == nullptr) continue;
    if (KeyOf(push->payload.header()) == key) {
      ++context_.counters.repeats;
      context_.ReplyToPush(MessageKind::kReceived, key);
    } else {
      Defer(key);  // of another worker, or cut differently: requested when that one is applied
    }
    return true;
  }
  return false;
}

void AppliedPushes::Queue(bool exact) {
  const PushKey key = KeyOf(push_.header());
  if (push_.own() && !queued_->HasRoom(push_.size_bytes())) return Defer(key);
  context_.ReplyToPush(MessageKind::kReceived, key);
  queued_->Add(push_, exact, open_segments_);
  for (const uint32_t id : open_segments_) {
    if (!copies_.under_way(id)) copies_.Offer(id);
  }
}

SegmentUpdate AppliedPushes::NextUpdate(uint32_t segment, uint32_t& record_flags) {
  const QueuedPushes::Push& push = queued_->Front(segment);
  AddAlone(segment, push.payload);
  return UpdateOf(segment, push.payload.header(), record_flags);
}

void AppliedPushes::NameUpdate(uint32_t segment, WireHeader& header) const {
  const WireHeader& push = queued_->Front(segment).payload.header();
  header.virtual_worker = push.virtual_worker;
  header.virtual_worker_count = 1;
  header.clock = push.clock;
}

void AppliedPushes::ApplyOffered(uint32_t segment, const SegmentUpdate& update,
                                 uint32_t record_flags) {
  const QueuedPushes::Push& push = queued_->Front(segment);
  ApplyTo(segment, push.payload.header(), push.exact, update, record_flags);
}

void AppliedPushes::AfterOffered(uint32_t segment) {
  const WireHeader header = queued_->Front(segment).payload.header();
  // Release the payload first: kCommitted promises that the lane no longer reads it.
  if (queued_->Pop(segment)) SendCommitted(header);
  AnswerAfter(segment, header.virtual_worker);
  // Room is free now for pushes of any block that were deferred for lack of it.
  const auto wait = [this](const PushKey& other) { return IsEarly(other) || !queued_->HasRoom(0); };
  for (uint32_t block = 0; block < context_.table.num_blocks() && early_.size() > 0; ++block) {
    early_.TakeWanted(block, context_.now, wait, wanted_);
  }
  if (!queued_->empty(segment)) copies_.Offer(segment);
}

// ---- time, views, the end ----

void AppliedPushes::OnTick() {
  early_.OnTick(
      context_.now, [this](const PushKey& key) { return IsApplied(key); }, wanted_);
  AskForDeferred();
}

void AppliedPushes::SetLive() {
  for (const uint32_t id : own_.ids()) {
    own_.state(id).next->Recount();
    MaybeSnapshot(id);
  }
  pulls_.LookAgainAtAll();  // they wait for the slowest live virtual worker
}

void AppliedPushes::SetFinal() {
  for (const uint32_t id : own_.ids()) MaybeSnapshot(id);
  pulls_.LookAgainAtAll();
}

bool AppliedPushes::IsFinal(const SegmentState& state) const {
  if (context_.final_clocks.empty()) return false;
  for (uint32_t vw = 0; vw < context_.live.size(); ++vw) {
    if (context_.live.has(vw) && state.next->next(vw) < context_.final_clocks[vw]) return false;
  }
  return true;
}

// Step k of the job is complete after S k updates, S = virtual workers, whoever made them. The last
// step is complete when no more pushes can come, perhaps a few updates later; it has no second
// snapshot at its own multiple of S, where the state would differ.
void AppliedPushes::MaybeSnapshot(uint32_t segment) {
  const ShardOptions& options = context_.options;
  SegmentState& state = own_.state(segment);
  uint64_t step = state.version / options.virtual_workers;
  bool due = false;
  if (!state.final && IsFinal(state)) {
    state.final = due = true;
    step = context_.final_version;
  } else {
    const uint64_t interval = options.checkpoint_interval * options.virtual_workers;
    due = interval > 0 && state.version % interval == 0 &&
          (options.last_step == 0 || step < options.last_step);
  }
  if (due && state.snapshot_version != step) own_.Snapshot(segment, step);
}

// Describes the segment at which the pull with the lowest header version waits.
ShardActivity AppliedPushes::activity() const {
  std::optional<uint32_t> at;
  uint64_t clock = std::numeric_limits<uint64_t>::max();
  pulls_.waiting().Look([&](const WaitingPull& pull, uint32_t segment) {
    if (!own_.has(segment) || pull.header.clock >= clock) return;
    at = segment;
    clock = pull.header.clock;
  });
  if (!at.has_value()) return {};
  const VectorClock& next = *own_.state(*at).next;
  ShardActivity activity{.block = context_.table.segment(*at).block, .clock = next.least()};
  activity.SetWaiting(context_.live, [&](uint32_t virtual_worker) {
    return next.next(virtual_worker) == next.least();
  });
  return activity;
}

}  // namespace tug
