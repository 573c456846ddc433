// The first half of a clock: pushes that are summed (BSP, BACKUP), until the policy closes it.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/elapsed.h"
#include "server/shard.h"

namespace tug {

Shard::Fresh Shard::Examine(const WireHeader& push) {
  open_segments_.clear();
  Fresh fresh;
  const uint32_t first = FirstId(push);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    const SegmentState& state = *states_[id];
    switch (policy_->FateOf(push.virtual_worker, push.clock, ClocksOf(state))) {
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
        const bool added = state.sum.Covers(push.virtual_worker, push.virtual_worker_count);
        // It closes without this push, once the norms and copies have come that it waits for. With
        // another placement before that, it would have to have it: then nobody is told yet.
        const bool sealed = !added && state.sum.complete();
        if (sealed && policy_->spare() > 0) {
          ++fresh.dropped;
          break;
        }
        fresh.valid = fresh.valid && weights_.RunIsAt(id, push.clock);
        open_segments_.push_back(id);
        if (!added && !sealed) ++fresh.missing;
    }
  }
  return fresh;
}

void Shard::OnPush(Message message) {
  const WireHeader header = message.header;
  const bool announced = header.codec == Codec::kNone && message.payload.size_bytes() == 0;
  if (announced) return OnAnnounced(header);
  if (!NamesOwnPush(header)) return Malformed(header, "is a push of what this lane does not own");
  const Fresh fresh = Examine(header);
  if (!fresh.valid) return Malformed(header, "is a push at a clock that nobody can have reached");
  const PushKey key = KeyOf(header);
  if (AnswerKnown(key, fresh)) return;
  if (open_pushes_.in_block(header.block) >= MaxOpen(header.block)) {
    return Malformed(header, "is one of more pushes than the virtual workers can have open");
  }
  if (!push_.Take(std::move(message), table_)) {
    return Malformed(header, "is a push of the wrong size");
  }
  if (!ExpandPush()) return Malformed(header, "is a push of runs that change");
  const bool own = push_.own() || options_.senders_let_go;
  if (!admission_.Admits(key, own)) {
    ++counters_.deferred;
    admission_.Defer(key, own);
    return ReplyToPush(MessageKind::kDeferred, key, key.clock);
  }
  admission_.Forget(key);
  open_pushes_.Add(key, open_segments_);
  AddToSums(key);
  // Once all its segments have closed, kCommitted has been sent, and says as much.
  const bool open = std::any_of(open_segments_.begin(), open_segments_.end(),
                                [&](uint32_t id) { return states_[id]->version == key.clock; });
  if (open) ReplyToPush(MessageKind::kReceived, key, key.clock);
}

// Asked for now, or told that it will be.
void Shard::OnAnnounced(const WireHeader& header) {
  if (!Lacks(header)) return;
  const PushKey key = KeyOf(header);
  if (admission_.Announce(key, now_, wanted_)) return;
  ++counters_.deferred;
  ReplyToPush(MessageKind::kDeferred, key, key.clock);
}

bool Shard::AnswerKnown(const PushKey& key, const Fresh& fresh) {
  if (open_segments_.empty()) {
    AnswerClosed(key, fresh);
    return true;
  }
  if (fresh.missing > 0) return false;
  if (!open_pushes_.Contains(key, open_segments_.front())) {
    if (open_pushes_.in_block(key.block) >= MaxOpen(key.block)) return false;
    open_pushes_.Add(key, open_segments_);  // somebody else's, or cut in other ways
  }
  ++counters_.repeats;
  ReplyToPush(MessageKind::kReceived, key, key.clock);
  return true;
}

bool Shard::Lacks(const WireHeader& push) {
  if (!NamesOwnPush(push)) {
    Malformed(push, "names a push of what this lane does not own");
    return false;
  }
  const Fresh fresh = Examine(push);
  if (!fresh.valid) {
    Malformed(push, "names a push that nobody can have made");
    return false;
  }
  if (AnswerKnown(KeyOf(push), fresh)) return false;
  if (fresh.missing == 0) {
    Malformed(push, "is of one of more pushes than the virtual workers can have open");
  }
  return fresh.missing > 0;
}

// One that the lane lacks it has never said kReceived to: segments stay where they are where
// workers ask.
void Shard::OnPushAsked(const Message& message) {
  const WireHeader& header = message.header;
  if (update_per_push_ || message.payload.size_bytes() > 0) {
    return Malformed(header, "asks for a push that is not summed, or is one");
  }
  if (Lacks(header)) ReplyToPush(MessageKind::kDropped, KeyOf(header), header.clock);
}

// Workers cut blocks alike, so a push is too late for all of its segments or for none. In the steps
// in which a schedule changes it may be for some: it is committed with the others.
void Shard::AnswerClosed(const PushKey& key, const Fresh& fresh) {
  admission_.Forget(key);
  if (fresh.dropped == key.segment_count) {
    ++counters_.dropped_pushes;
    return ReplyToPush(MessageKind::kDropped, key, key.clock + 1);
  }
  ++counters_.repeats;
  ReplyToPush(MessageKind::kCommitted, key, key.clock + 1);
}

uint32_t Shard::LiveArrived(const SegmentState& state) const {
  if (live_.all()) return state.sum.added();
  uint32_t arrived = 0;
  for (uint32_t vw = 0; vw < live_.size(); ++vw) {
    arrived += live_.has(vw) && state.sum.Covers(vw, 1) ? 1 : 0;
  }
  return arrived;
}

void Shard::AddToSums(const PushKey& key) {
  summed_.clear();
  TraceSpan span(options_.trace, EventOf(TraceKind::kSum, push_.header()));
  std::optional<ElapsedSeconds> elapsed(std::in_place, options_.time, counters_.decode_seconds);
  for (const uint32_t id : open_segments_) {
    SegmentState& state = *states_[id];
    if (state.sum.complete() || state.sum.Covers(key.virtual_worker, key.virtual_worker_count)) {
      continue;
    }
    Contribution part = push_.Part(id, table_);
    part.stays = !options_.senders_let_go;
    state.sum.Add(key.virtual_worker, key.virtual_worker_count, std::move(part));
    state.tokens += push_.header().token_count;
    if (policy_->Closes(LiveArrived(state), live_.count())) {
      if (!state.sum.complete()) state.sum.Seal();
      summed_.push_back(id);
    }
    admission_.Changed(id);
  }
  // From here on the sums alone hold it: who is told kCommitted finds the payload released.
  push_.Release();
  span.End();
  elapsed.reset();
  for (const uint32_t id : summed_) OnLocalSum(id);
}

void Shard::AskForDeferred() {
  if (update_per_push_) {
    // early_ has put them there.
  } else {
    admission_.TakeWanted(now_, wanted_);
  }
  for (const PushKey& key : wanted_) {
    if (policy_->spare() > 0 && AnswerIfClosed(key)) continue;
    ReplyToPush(MessageKind::kPushWanted, key, key.clock);
  }
  wanted_.clear();
}

bool Shard::AnswerIfClosed(const PushKey& key) {
  WireHeader header;
  SetPush(key, header);
  const Fresh fresh = Examine(header);
  if (!open_segments_.empty()) return false;
  AnswerClosed(key, fresh);
  return true;
}

}  // namespace tug
