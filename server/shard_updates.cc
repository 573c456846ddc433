// Pushes that are updates by themselves (SSP, ASP).
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "kernels/sum.h"
#include "server/push_step.h"
#include "server/shard.h"

namespace tug {

std::optional<Shard::Fresh> Shard::ExamineUpdate(const WireHeader& push) {
  open_segments_.clear();
  Fresh fresh;
  bool early = false;
  const uint32_t first = FirstId(push);
  for (uint32_t id = first; id < first + push.segment_count; ++id) {
    const SegmentState& state = *states_[id];
    const PushFate fate = policy_->FateOf(push.virtual_worker, push.clock, ClocksOf(state));
    early = early || fate == PushFate::kEarly;
    fresh.valid = fresh.valid && fate != PushFate::kImpossible;
    if (fate == PushFate::kTake) open_segments_.push_back(id);
  }
  if (early && fresh.valid) return std::nullopt;
  return fresh;
}

bool Shard::IsEarly(const PushKey& key) const {
  const uint32_t first = table_.id(key.block, key.first_segment);
  for (uint32_t id = first; id < first + key.segment_count; ++id) {
    if (states_[id]->next->next(key.virtual_worker) < key.clock) return true;
    if (queued_.has_value() && queued_->Find(id, key.virtual_worker) != nullptr) return true;
  }
  return false;
}

bool Shard::IsApplied(const PushKey& key) const {
  const uint32_t first = table_.id(key.block, key.first_segment);
  for (uint32_t id = first; id < first + key.segment_count; ++id) {
    if (states_[id]->next->next(key.virtual_worker) <= key.clock) return false;
  }
  return true;
}

void Shard::OnUpdate(Message message) {
  const WireHeader header = message.header;
  if (!NamesOwnPush(header) || header.virtual_worker_count != 1) {
    return Malformed(header, "is a push of what this lane does not own");
  }
  const PushKey key = KeyOf(header);
  const std::optional<Fresh> fresh = ExamineUpdate(header);
  // One that has been applied is a repeat, whenever it was.
  const bool applied = fresh.has_value() && fresh->valid && open_segments_.empty();
  if (!applied && !final_clocks_.empty() && header.clock >= final_clocks_[header.virtual_worker]) {
    return Malformed(header, "is of a clock after the last one");
  }
  if (!fresh.has_value()) return DeferUpdate(key);
  if (!fresh->valid) return Malformed(header, "is of a clock that nobody can have reached");
  early_.Forget(key);
  if (open_segments_.empty()) {
    ++counters_.repeats;
    return ReplyToPush(MessageKind::kCommitted, key, states_[FirstId(header)]->version);
  }
  if (queued_.has_value() && AnswerIfQueued(key)) return;
  if (!push_.Take(std::move(message), table_)) {
    return Malformed(header, "is a push of the wrong size");
  }
  if (!ExpandPush()) return Malformed(header, "is a push of runs that change");
  const uint32_t first = FirstId(header);
  const bool exact = !served_.has_value() || header.version == kWhateverVersion ||
                     served_->IsExact(header.sender, header.clock, first, header.segment_count);
  if (queued_.has_value()) return Queue(exact);
  for (const uint32_t id : open_segments_) {
    AddAlone(id, push_);
    uint32_t flags = 0;
    const SegmentUpdate update = UpdateByPush(id, header, flags);
    ApplyPush(id, header, exact, update, flags);
  }
  // Who is told kCommitted finds the payload released.
  push_.Release();
  uint64_t version = states_[first]->version;
  for (uint32_t id = first; id < first + header.segment_count; ++id) {
    version = std::min(version, states_[id]->version);
  }
  ReplyToPush(MessageKind::kCommitted, key, version);
  for (const uint32_t id : open_segments_) AnswerAfter(id, header.virtual_worker);
  early_.TakeWanted(
      key.block, now_, [this](const PushKey& other) { return IsEarly(other); }, wanted_);
}

void Shard::AddAlone(uint32_t segment, const PushPayload& push) {
  Contribution part = push.Part(segment, table_);
  TraceEvent event = EventOf(TraceKind::kDecode, push.header());
  event.first_segment = table_.segment(segment).index;
  event.segment_count = 1;
  event.bytes = part.payload.size_bytes();
  const TraceSpan span(part.codec == 0 ? nullptr : options_.trace, event);
  const ElapsedSeconds elapsed(options_.time, counters_.decode_seconds);
  states_[segment]->sum.Add(0, 1, std::move(part));
}

// Later ones that there are not yet: nobody can have been served them. Taken as the newest, since
// a push that is dropped without an answer holds up all who wait for it.
uint64_t Shard::WeightsVersion(uint32_t segment, const WireHeader& push) const {
  return std::min(push.version, states_[segment]->version);
}

void Shard::ApplyPush(uint32_t segment, const WireHeader& push, bool exact,
                      const SegmentUpdate& update, uint32_t flags) {
  SegmentState& state = *states_[segment];
  const uint64_t of = WeightsVersion(segment, push);
  const uint64_t staleness = state.version - of;
  MakeVersion(segment, update, push.virtual_worker, push.clock);
  state.sum.Clear();
  state.least_rose = state.next->Advance(push.virtual_worker);
  ++counters_.updates;
  CountStaleness(counters_.staleness, staleness);
  if (sinks_.record) {
    if (push.version == kWhateverVersion) flags |= OrderRecord::kUntouched;
    if (!exact || (push.version > of && push.version != kWhateverVersion)) {
      flags |= OrderRecord::kInexact;
      if (counters_.inexact_records++ == 0) {
        sinks_.notice({"order/inexact",
                       "an update was made of weights of several versions: the order of this run "
                       "is recorded, but it cannot be computed again from there on"});
      }
    }
    sinks_.record({.segment = segment,
                   .virtual_worker = push.virtual_worker,
                   .clock = push.clock,
                   .version = state.version,
                   .weights_version = of,
                   .flags = flags});
  }
  MaybeSnapshot(segment);
}

SegmentUpdate Shard::UpdateByPush(uint32_t segment, const WireHeader& push, uint32_t& flags) {
  const SegmentState& state = *states_[segment];
  const uint64_t weights_version = WeightsVersion(segment, push);
  const uint64_t staleness = state.version - weights_version;
  const Segment& place = table_.segment(segment);
  SegmentUpdate update;
  update.step = StepOfPush(options_.sync, options_.virtual_workers,
                           {.version = state.version,
                            .staleness = staleness,
                            .token_count = push.token_count,
                            .weight_decay = place.weight_decay});
  std::span<const float> gradient = state.sum.sum();
  bool finite = state.sum.first_not_finite() == SumTree::kNone;
  if (finite && WantsCompensation(options_.sync, staleness)) {
    const std::span<const float> old = served_->Weights(push.sender, segment, weights_version);
    if (old.empty()) {
      flags = OrderRecord::kNotCompensated;
    } else {
      gradient = CompensateDelay(
          options_.sync,
          {.gradient = gradient, .of = old, .weights = weights_.weights(segment, state.version)},
          update.step, compensated_);
      finite = kernels::AllFinite(gradient.data(), static_cast<int64_t>(gradient.size()));
    }
  }
  if (!finite) {
    NoticeSkip(push.clock, place.block, push.virtual_worker);
    flags = OrderRecord::kSkipped;
    return update;
  }
  update.gradient = gradient;
  return update;
}

void Shard::AnswerAfter(uint32_t segment, uint32_t virtual_worker) {
  // Some wait for the slowest, some for pushes of their own sender; near the end, where who has
  // pushed its last clock is not waited for, for anybody.
  const bool all = std::exchange(states_[segment]->least_rose, false) || !final_clocks_.empty();
  waiting_pulls_.TakeEach(
      segment, [this](WaitingPull pull) { LookAgain(std::move(pull)); },
      [&](const WireHeader& pull) {
        return all || pull.want == Want::kExact ||
               (virtual_worker >= pull.virtual_worker &&
                virtual_worker - pull.virtual_worker < pull.virtual_worker_count);
      });
}

void Shard::AnswerAllWaiting() {
  for (const uint32_t id : owned_) {
    waiting_pulls_.TakeEach(id, [this](WaitingPull pull) { LookAgain(std::move(pull)); });
  }
}

void Shard::SetClocks(uint32_t segment, std::span<const uint64_t> clocks) {
  TUG_CHECK(update_per_push_ && !started_);
  TUG_CHECK_EQ(clocks.size(), size_t{1} + options_.virtual_workers);
  if (states_[segment] == nullptr) {
    return copies_.SetClocks(segment, clocks[0], clocks.subspan(1));
  }
  states_[segment]->version = clocks[0];
  states_[segment]->next->Set(clocks.subspan(1));
}

}  // namespace tug
