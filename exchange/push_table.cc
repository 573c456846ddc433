#include "exchange/push_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "exchange/exchange_header.h"

namespace tug {

PushTable::PushTable(const ExchangeOptions& options,
                     const std::shared_ptr<const PartitionPlan>& plan, const ExchangeSinks& sinks,
                     PushEncoder& encoder, SendBuffers& buffers, const SegmentVersions& versions,
                     ExchangeCounters& counters)
    : options_(options),
      plan_(plan),
      sinks_(sinks),
      encoder_(encoder),
      buffers_(buffers),
      versions_(versions),
      counters_(counters),
      resend_after_(absl::Milliseconds(options.comm.resend_ms())),
      queue_(PolicyOf(options.comm.scheduler()), options.comm.credit_bytes()),
      heads_(plan->num_blocks()) {}

// ---- places ----

uint32_t PushTable::TakePlace() {
  if (free_places_.empty()) {
    places_.push_back(std::make_unique<OpenPush>());
    return static_cast<uint32_t>(places_.size() - 1);
  }
  const uint32_t place = free_places_.back();
  free_places_.pop_back();
  return place;
}

uint32_t& PushTable::HeadOf(uint32_t block, uint32_t virtual_worker) {
  TUG_CHECK_LT(virtual_worker, kMaxVirtualWorkers);
  std::vector<uint32_t>& heads = heads_[block];
  if (virtual_worker >= heads.size()) heads.resize(virtual_worker + 1, kNone);
  return heads[virtual_worker];
}

// The header comes from outside.
uint32_t PushTable::Find(const WireHeader& header) const {
  if (header.block >= heads_.size()) return kNone;
  const std::vector<uint32_t>& heads = heads_[header.block];
  if (header.virtual_worker >= heads.size()) return kNone;
  uint32_t place = heads[header.virtual_worker];
  while (place != kNone && places_[place]->request.clock != header.clock) {
    place = places_[place]->next;
  }
  return place;
}

// ---- sending ----

void PushTable::ChooseCodec(const PushRequest& request, const Partition& part,
                            PartitionPush& push) const {
  push.bytes = part.bytes();
  if (encoder_.Encodes(part, request.clock)) {
    push.codec = Codec::kFrames;
    push.bytes = encoder_.MaxBytes(part, request.clock);
  } else if (!request.runs.empty()) {
    const uint64_t bytes = EncodedBytes(Clip(request.runs, part.begin, part.end), true);
    if (bytes >= part.bytes()) return;
    push.codec = Codec::kRuns;
    push.bytes = bytes;
  }
}

void PushTable::Add(PushRequest request, absl::Time now) {
  TUG_CHECK_EQ(request.gradient.size_bytes(), plan_->block_elements(request.block) * sizeof(float));
  uint32_t& head = HeadOf(request.block, request.virtual_worker);
  for (uint32_t other = head; other != kNone; other = places_[other]->next) {
    TUG_CHECK(places_[other]->request.clock != request.clock) << "pushed twice";
    if (encoder_.error_feedback()) EncodeAll(*places_[other]);
  }
  const uint32_t place = TakePlace();
  OpenPush& push = *places_[place];
  push.request = std::move(request);
  push.dropped = push.lost = false;
  push.next = std::exchange(head, place);
  ++open_;
  // Now: when its turn comes, weights of a later version may be here.
  Cut(place, [&](const Partition& part) {
    return options_.update_per_push ? versions_.Lowest(part) : push.request.clock;
  });
  SendQueued(now);
}

uint64_t PushTable::LowestVersion(std::span<const Partition> plan,
                                  std::span<const PartitionPush> pushes, const Partition& part) {
  uint64_t lowest = kWhateverVersion;
  for (size_t p = 0; p < plan.size(); ++p) {
    const bool overlaps = plan[p].begin < part.end && part.begin < plan[p].end;
    if (overlaps) lowest = std::min(lowest, pushes[p].version);
  }
  return lowest;
}

template <typename VersionOf>
void PushTable::Cut(uint32_t place, const VersionOf& version_of) {
  OpenPush& push = *places_[place];
  const std::span<const Partition> plan = plan_->of_block(push.request.block);
  push.plan = plan_;
  push.partitions.assign(plan.size(), PartitionPush{.patience = resend_after_});
  push.uncommitted = push.unreceived = static_cast<uint32_t>(plan.size());
  for (uint32_t p = 0; p < plan.size(); ++p) {
    PartitionPush& part = push.partitions[p];
    ChooseCodec(push.request, plan[p], part);
    part.version = version_of(plan[p]);
    TraceQueued(part);
    part.ticket = queue_.Enqueue({.priority = push.request.block,
                                  .group = place,
                                  .bytes = part.bytes,
                                  .item = uint64_t{place} << 32 | p});
  }
}

void PushTable::SetCredit(uint64_t credit_bytes, absl::Time now) {
  queue_.set_credit_bytes(credit_bytes);
  SendQueued(now);
}

void PushTable::SendQueued(absl::Time now) {
  while (!probes_) {
    const std::optional<uint64_t> item = queue_.Next();
    if (!item.has_value()) break;
    OpenPush& push = *places_[*item >> 32];
    const auto partition = static_cast<uint32_t>(*item);
    if (IsShort(push, partition)) {
      queue_.Received(push.partitions[partition].ticket);
      Announce(push, partition, now);
      continue;
    }
    push.partitions[partition].state = State::kSent;
    TraceSending(push, partition);
    if (push.partitions[partition].codec == Codec::kFrames) Encode(push, partition);
    HoldBytesOf(push.partitions[partition]);
    MeasureSending(push, partition, now);
    Send(push, partition, now);
    probes_ = push.partitions[partition].probes;
  }
  counters_.most_outstanding_bytes = queue_.most_outstanding_bytes();
}

// What `auto` chooses may be a hundredth of what it might have chosen.
void PushTable::HoldBytesOf(const PartitionPush& part) {
  if (!options_.comm.push_codec().has_auto_()) return;
  queue_.Shrink(part.ticket, BytesOf(part));
}

void PushTable::Send(OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& state = push.partitions[partition];
  Lease payload = Payload(push, partition);
  TUG_CHECK_GT(payload.size_bytes(), size_t{0}) << "a push without its payload is an announcement";
  const WireHeader header = PushHeader(MessageKind::kPush, push, partition);
  state.due = now + state.patience;
  next_due_ = std::min(next_due_, state.due);
  counters_.pushed_bytes += payload.size_bytes();
  sinks_.send({LanePeer(PartOf(push, partition).lane), header, std::move(payload)});
}

WireHeader PushTable::PushHeader(MessageKind kind, const OpenPush& push, uint32_t partition) const {
  const PushRequest& request = push.request;
  const PartitionPush& state = push.partitions[partition];
  WireHeader header = HeaderOf(options_, kind, PartOf(push, partition));
  header.codec = state.codec;
  header.virtual_worker = request.virtual_worker;
  header.virtual_worker_count = request.virtual_worker_count;
  header.clock = request.clock;
  header.version = state.version;
  header.token_count = request.token_count;
  return header;
}

Lease PushTable::Payload(OpenPush& push, uint32_t partition) {
  const PartitionPush& state = push.partitions[partition];
  const Partition& part = PartOf(push, partition);
  const Lease& gradient = push.request.gradient;
  if (state.codec == Codec::kFrames) return state.frames;
  if (state.codec == Codec::kNone) return gradient.Slice(part.begin * sizeof(float), part.bytes());
  const TraceSpan span(options_.trace, EventOf(TraceKind::kEncode, push, partition));
  SendBuffers::Payload payload = buffers_.Take(state.bytes);
  EncodeRuns(Clip(push.request.runs, part.begin, part.end),
             gradient.floats().subspan(part.begin, part.end - part.begin), payload.bytes);
  return std::move(payload.lease);
}

void PushTable::EncodeAll(OpenPush& push) {
  for (uint32_t p = 0; p < push.partitions.size(); ++p) {
    const PartitionPush& part = push.partitions[p];
    const bool unsent = part.state == State::kQueued || part.state == State::kAnnounced ||
                        part.state == State::kDeferred || part.state == State::kWanted;
    if (unsent && part.codec == Codec::kFrames) Encode(push, p);
  }
}

// Of several of a block, those but the newest are encoded already (Add).
void PushTable::EncodeAllOf(uint32_t virtual_worker) {
  for (const std::vector<uint32_t>& heads : heads_) {
    if (virtual_worker < heads.size() && heads[virtual_worker] != kNone) {
      EncodeAll(*places_[heads[virtual_worker]]);
    }
  }
}

void PushTable::Encode(OpenPush& push, uint32_t partition) {
  PartitionPush& state = push.partitions[partition];
  if (state.frames.size_bytes() > 0) return;
  const bool encodes = encoder_.Choose(push.request, PartOf(push, partition), push.encoded);
  state.probes = encoder_.TakeProbe(PartOf(push, partition).lane);
  if (!encodes) {
    state.codec = Codec::kNone;
    state.bytes = PartOf(push, partition).bytes();
    return;
  }
  TraceSpan span(options_.trace, EventOf(TraceKind::kEncode, push, partition));
  const ElapsedSeconds elapsed(options_.time, counters_.encode_seconds);
  state.frames = encoder_.Encode(push.request, PartOf(push, partition), push.encoded);
  span.set_bytes(state.frames.size_bytes());
}

// Of what was sent twice it is not known which one is answered. What is received may have been
// announced only, and has no frames yet: the lane has it of the worker that carried the virtual
// worker before.
void PushTable::SendAgain(OpenPush& push, uint32_t partition, absl::Time now) {
  if (push.partitions[partition].codec == Codec::kFrames) Encode(push, partition);
  Send(push, partition, now);
  ForgetSending(push.partitions[partition]);
}

void PushTable::QueueAgain(PartitionPush& part) {
  part.state = State::kWanted;
  if (part.sent_ns > 0) TraceQueued(part);  // else it is queued since it was pushed
  queue_.EnqueueAgain(part.ticket);
}

void PushTable::AskFor(OpenPush& push, uint32_t partition, absl::Time now) {
  SendHeader(MessageKind::kPushAsked, push, partition, now);
}

void PushTable::SendHeader(MessageKind kind, OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& state = push.partitions[partition];
  state.due = now + state.patience;
  next_due_ = std::min(next_due_, state.due);
  WireHeader header = PushHeader(kind, push, partition);
  if (kind == MessageKind::kPush) header.codec = Codec::kNone;  // chosen when it is sent
  sinks_.send({LanePeer(PartOf(push, partition).lane), header, Lease()});
}

// ---- answers ----

void PushTable::OnAnswer(const WireHeader& header, absl::Time now) {
  const uint32_t place = Find(header);
  const std::optional<uint32_t> partition =
      place == kNone ? std::nullopt : places_[place]->plan->Find(header);
  if (!partition.has_value() || !Advance(place, *partition, header.kind, now)) {
    ++counters_.ignored;
    return;
  }
  if (places_[place]->uncommitted == 0) Finish(place);
  SendQueued(now);
}

// Takes an answer; false if it says nothing new.
bool PushTable::Advance(uint32_t place, uint32_t partition, MessageKind answer, absl::Time now) {
  OpenPush& push = *places_[place];
  PartitionPush& part = push.partitions[partition];
  const State before = part.state;
  if (before == State::kQueued || before == State::kCommitted) return false;
  switch (answer) {
    case MessageKind::kReceived:
      if (before == State::kReceived) return false;
      part.state = State::kReceived;
      queue_.Received(part.ticket);
      break;
    case MessageKind::kDropped:
      push.dropped = true;
      push.lost = options_.frees_gradients;
      ++counters_.dropped;
      if (!push.lost) encoder_.Restore(push.request, PartOf(push, partition), push.encoded);
      [[fallthrough]];
    case MessageKind::kCommitted:  // says received too, should that answer be lost
      part.state = State::kCommitted;
      queue_.Committed(part.ticket);
      --push.uncommitted;
      break;
    case MessageKind::kDeferred:
      if (before != State::kSent && before != State::kAnnounced) return false;
      part.state = State::kDeferred;
      queue_.Received(part.ticket);
      NoteDeferred(push, partition);
      break;
    case MessageKind::kPushWanted:
      if (before == State::kDeferred || before == State::kAnnounced) {
        QueueAgain(part);
        return true;
      }
      if (before != State::kSent) return false;
      SendAgain(push, partition, now);  // kDeferred was overtaken or lost: it holds its credit
      return true;
    default:
      return false;
  }
  if (before == State::kSent) {
    TraceAnswer(push, partition);
    MeasureAnswer(push, partition, now);
  }
  const bool received = part.state == State::kReceived || part.state == State::kCommitted;
  if (options_.frees_gradients && received && before != State::kReceived) LetGo(push, partition);
  return true;
}

void PushTable::LetGo(OpenPush& push, uint32_t partition) {
  push.partitions[partition].frames = Lease();
  const Partition& part = PartOf(push, partition);
  if (!push.encoded.segments.empty()) {
    for (uint32_t s = part.first_segment; s < part.first_segment + part.segment_count; ++s) {
      push.encoded.segments[s].frame = Lease();
    }
  }
  if (--push.unreceived == 0) SayReceived(push);
}

void PushTable::SayReceived(OpenPush& push) {
  push.unreceived = 0;
  push.request.gradient = Lease();
  push.request.frames = {};
  if (!sinks_.received) return;
  sinks_.received({push.request.block, push.request.virtual_worker, push.request.clock});
}

void PushTable::Finish(uint32_t place) {
  OpenPush& push = *places_[place];
  uint32_t* link = &HeadOf(push.request.block, push.request.virtual_worker);
  while (*link != place) link = &places_[*link]->next;
  *link = push.next;
  --open_;
  if (options_.frees_gradients && push.unreceived > 0) SayReceived(push);
  const PushCommitted event{push.request.block, push.request.virtual_worker, push.request.clock,
                            push.dropped, push.lost};
  push.request.gradient = Lease();
  push.request.frames = {};
  push.encoded.segments.clear();
  push.partitions.clear();
  push.plan.reset();
  free_places_.push_back(place);
  sinks_.committed(event);
}

// ---- time ----

void PushTable::OnTick(absl::Time now) {
  if (now < next_due_) return;
  next_due_ = absl::InfiniteFuture();
  for (uint32_t place = 0; place < places_.size(); ++place) {
    OpenPush& push = *places_[place];
    if (push.uncommitted == 0) continue;
    for (uint32_t p = 0; p < push.partitions.size(); ++p) {
      const PartitionPush& part = push.partitions[p];
      const bool unanswered = part.state == State::kSent || part.state == State::kReceived ||
                              part.state == State::kDeferred || part.state == State::kAnnounced;
      if (!unanswered) continue;
      if (now >= part.due) Repeat(place, p, now);
      if (part.state != State::kWanted) next_due_ = std::min(next_due_, part.due);
    }
  }
  SendQueued(now);
}

void PushTable::SendAllAgain(absl::Time now) {
  for (const std::unique_ptr<OpenPush>& push : places_) {
    if (push->uncommitted == 0) continue;
    for (uint32_t p = 0; p < push->partitions.size(); ++p) {
      PartitionPush& part = push->partitions[p];
      part.patience = resend_after_;
      if (part.state == State::kReceived && options_.frees_gradients) {
        ++counters_.resent;
        AskFor(*push, p, now);
      } else if (part.state == State::kDeferred || part.state == State::kAnnounced) {
        ++counters_.resent;
        OfferAgain(*push, p, now);
      } else if (part.state == State::kReceived) {
        ++counters_.resent;
        QueueAgain(part);
      } else if (part.state == State::kSent) {  // it holds its credit
        ++counters_.resent;
        SendAgain(*push, p, now);
      }
    }
  }
  SendQueued(now);
}

void PushTable::CutAllAgain(absl::Time now) {
  encoder_.RestartLinks();
  probes_ = false;
  short_until_.clear();
  for (uint32_t place = 0; place < places_.size(); ++place) {
    OpenPush& push = *places_[place];
    if (push.uncommitted == 0) continue;
    const bool whole = push.unreceived == push.partitions.size();
    for (const PartitionPush& part : push.partitions) {
      if (part.state == State::kCommitted) continue;
      queue_.Committed(part.ticket);
      if (part.state != State::kQueued && part.state != State::kWanted) ++counters_.resent;
    }
    if (options_.frees_gradients && !whole) {
      push.uncommitted = 0;
      push.lost = true;
      Finish(place);
      continue;
    }
    const std::shared_ptr<const PartitionPlan> plan = std::move(push.plan);
    const std::vector<PartitionPush> partitions = std::move(push.partitions);
    Cut(place, [&](const Partition& part) {
      return LowestVersion(plan->of_block(push.request.block), partitions, part);
    });
  }
  SendQueued(now);
}

void PushTable::GiveUpAllBut(std::span<const uint32_t> virtual_workers, absl::Time now) {
  for (uint32_t place = 0; place < places_.size(); ++place) {
    OpenPush& push = *places_[place];
    const uint32_t virtual_worker = push.request.virtual_worker;
    if (push.uncommitted == 0 || std::find(virtual_workers.begin(), virtual_workers.end(),
                                           virtual_worker) != virtual_workers.end()) {
      continue;
    }
    for (PartitionPush& part : push.partitions) {
      if (part.state == State::kCommitted) continue;
      queue_.Committed(part.ticket);
      part.state = State::kCommitted;
    }
    push.uncommitted = 0;
    push.dropped = true;
    Finish(place);
  }
  encoder_.GiveUpAllBut(virtual_workers);
  encoder_.RestartLinks();
  probes_ = false;
  SendQueued(now);
}

void PushTable::Repeat(uint32_t place, uint32_t partition, absl::Time now) {
  OpenPush& push = *places_[place];
  PartitionPush& part = push.partitions[partition];
  ++counters_.resent;
  // A received push may wait long for a straggler: ever fewer repeats, not one an interval. With a
  // bound: while one partition waits all others of the step reach the same patience, and each
  // answer that is lost then costs as much.
  part.patience = std::min(part.patience * 2, kMostPatience * resend_after_);
  if (part.state == State::kDeferred || part.state == State::kAnnounced) {
    OfferAgain(push, partition, now);
  } else if (part.state == State::kReceived && options_.frees_gradients) {
    AskFor(push, partition, now);
  } else {
    SendAgain(push, partition, now);  // credit is held, or has returned, as before
  }
}

}  // namespace tug
