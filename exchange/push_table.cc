// SPDX-License-Identifier: Apache-2.0
#include "exchange/push_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "blocks/exchange_header.h"

namespace tug {
namespace {

// Lowest weights version that the gradient of `part` was computed with, from the versions of the
// partitions that the push had before.
uint64_t LowestVersion(std::span<const Partition> plan, std::span<const PartitionPush> pushes,
                       const Partition& part) {
  uint64_t lowest = kAnyWeightsVersion;
  for (size_t p = 0; p < plan.size(); ++p) {
    const bool overlaps = plan[p].begin < part.end && part.begin < plan[p].end;
    if (overlaps) lowest = std::min(lowest, pushes[p].version);
  }
  return lowest;
}

// Trace events of a partition: queued, sent, answered.
void TraceQueued(const TraceTrack* track, PartitionPush& part) {
  if (track != nullptr) part.queued_ns = track->NowNs();
}

void TraceSending(TraceTrack* track, OpenPush& push, uint32_t partition) {
  if (track == nullptr) return;
  PartitionPush& part = push.partitions[partition];
  part.sent_ns = track->NowNs();
  TraceEvent event = push.EventOf(TraceKind::kQueue, partition);
  event.begin_ns = part.queued_ns;
  event.end_ns = part.sent_ns;
  track->Add(event);
}

void TraceAnswer(TraceTrack* track, const OpenPush& push, uint32_t partition) {
  if (track == nullptr) return;
  TraceEvent event = push.EventOf(TraceKind::kPush, partition);
  event.begin_ns = push.partitions[partition].sent_ns;
  event.end_ns = track->NowNs();
  track->Add(event);
}

}  // namespace

PushTable::PushTable(const ExchangeOptions& options,
                     const std::shared_ptr<const PartitionPlan>& plan, const ExchangeSinks& sinks,
                     PushEncoder& encoder, SendBuffers& buffers, const SegmentVersions& versions,
                     ExchangeCounters& counters)
    : options_(options),
      plan_(plan),
      sinks_(sinks),
      encoder_(encoder),
      versions_(versions),
      counters_(counters),
      resend_after_(absl::Milliseconds(options.comm.resend_ms())),
      queue_(PolicyOf(options.comm.scheduler()), options.comm.credit_bytes()),
      pushes_(plan->num_blocks()),
      payloads_(options, encoder, buffers, counters) {}

// ---- sending ----

void PushTable::Add(PushRequest request, absl::Time now) {
  TUG_CHECK_EQ(request.gradient.size_bytes(), plan_->block_elements(request.block) * sizeof(float));
  if (encoder_.error_feedback()) {
    pushes_.ForEachOf(request.block, request.virtual_worker,
                      [&](OpenPush& other) { payloads_.EncodeUnsent(other); });
  }
  const std::optional<uint64_t> version = options_.mode.VersionAt(request.clock);
  // Records the version now: later weights may have arrived when the push is sent.
  Cut(pushes_.Open(std::move(request)), [&](const Partition& part) {
    return version.has_value() ? *version : versions_.Lowest(part);
  });
  SendQueued(now);
}

template <typename VersionOf>
void PushTable::Cut(uint32_t place, const VersionOf& version_of) {
  OpenPush& push = pushes_.at(place);
  const std::span<const Partition> plan = plan_->of_block(push.request.block);
  push.plan = plan_;
  push.partitions.assign(plan.size(), PartitionPush{.patience = resend_after_});
  push.uncommitted = push.unreceived = static_cast<uint32_t>(plan.size());
  for (uint32_t p = 0; p < plan.size(); ++p) {
    PartitionPush& part = push.partitions[p];
    payloads_.Choose(push, p);
    part.version = version_of(plan[p]);
    TraceQueued(options_.trace, part);
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
  while (!payloads_.probing()) {
    const std::optional<uint64_t> item = queue_.Next();
    if (!item.has_value()) break;
    OpenPush& push = pushes_.at(static_cast<uint32_t>(*item >> 32));
    const auto partition = static_cast<uint32_t>(*item);
    PartitionPush& part = push.partitions[partition];
    if (part.state != State::kWanted && IsShort(push, partition)) {
      queue_.Received(part.ticket);
      Announce(push, partition, now);
      continue;
    }
    part.state = State::kSent;
    TraceSending(options_.trace, push, partition);
    payloads_.Encode(push, partition);
    // The payload that `auto` chose may be a hundredth of its upper bound.
    if (options_.comm.push_codec().has_auto_()) queue_.Shrink(part.ticket, part.payload_bytes());
    payloads_.OnSending(push, partition, now);
    Send(push, partition, now);
  }
  counters_.most_outstanding_bytes = queue_.most_outstanding_bytes();
}

void PushTable::Send(OpenPush& push, uint32_t partition, absl::Time now) {
  Lease payload = payloads_.PayloadOf(push, partition);
  TUG_CHECK_GT(payload.size_bytes(), size_t{0}) << "a push without its payload is an announcement";
  StartWaiting(push.partitions[partition], now);
  counters_.pushed_bytes += payload.size_bytes();
  sinks_.send({LanePeer(push.PartOf(partition).lane),
               PushHeader(MessageKind::kPush, push, partition), std::move(payload)});
}

void PushTable::SendHeader(MessageKind kind, OpenPush& push, uint32_t partition, absl::Time now) {
  StartWaiting(push.partitions[partition], now);
  WireHeader header = PushHeader(kind, push, partition);
  if (kind == MessageKind::kPush) header.codec = Codec::kNone;  // chosen when it is sent
  sinks_.send({LanePeer(push.PartOf(partition).lane), header, Lease()});
}

WireHeader PushTable::PushHeader(MessageKind kind, const OpenPush& push, uint32_t partition) const {
  const PushRequest& request = push.request;
  const PartitionPush& state = push.partitions[partition];
  WireHeader header = HeaderOf(options_, kind, push.PartOf(partition));
  header.codec = state.codec;
  header.virtual_worker = request.virtual_worker;
  header.virtual_worker_count = request.virtual_worker_count;
  header.clock = request.clock;
  header.version = state.version;
  header.token_count = request.token_count;
  return header;
}

void PushTable::StartWaiting(PartitionPush& part, absl::Time now) {
  part.due = now + part.patience;
  next_due_ = std::min(next_due_, part.due);
}

// Among several pushes of a block, all except the newest are encoded already (Add), so residuals
// stay in order.
void PushTable::EncodeAllOf(uint32_t virtual_worker) {
  for (uint32_t block = 0; block < plan_->num_blocks(); ++block) {
    pushes_.ForEachOf(block, virtual_worker, [&](OpenPush& push) { payloads_.EncodeUnsent(push); });
  }
}

// ---- what lanes have no memory for ----

bool PushTable::IsShort(const OpenPush& push, uint32_t partition) const {
  if (short_until_.empty()) return false;
  const auto found = short_until_.find(push.PartOf(partition).lane);
  return found != short_until_.end() && push.request.clock < found->second;
}

void PushTable::OnDeferred(const OpenPush& push, uint32_t partition) {
  ++counters_.deferred;
  if (!options_.mode.update_per_push) {
    uint64_t& until = short_until_[push.PartOf(partition).lane];
    until = std::max(until, push.request.clock + 1 + kAnnouncedClocks);
  }
  if (options_.frees_gradients && sinks_.deferred) {
    sinks_.deferred({push.request.block, push.request.virtual_worker});
  }
}

void PushTable::Announce(OpenPush& push, uint32_t partition, absl::Time now) {
  push.partitions[partition].state = State::kAnnounced;
  SendHeader(MessageKind::kPush, push, partition, now);
}

// ---- answers ----

void PushTable::OnAnswer(const WireHeader& header, absl::Time now) {
  const std::optional<UncommittedPushes::Found> found = pushes_.Find(header);
  if (!found.has_value() ||
      !Advance(pushes_.at(found->place), found->partition, header.kind, now)) {
    ++counters_.ignored;
    return;
  }
  if (pushes_.at(found->place).uncommitted == 0) Finish(found->place);
  SendQueued(now);
}

bool PushTable::Advance(OpenPush& push, uint32_t partition, MessageKind answer, absl::Time now) {
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
      if (!push.lost) encoder_.Restore(push.request, push.PartOf(partition), push.encoded);
      [[fallthrough]];
    case MessageKind::kCommitted:  // implies kReceived, which may have been lost
      part.state = State::kCommitted;
      queue_.Committed(part.ticket);
      --push.uncommitted;
      break;
    case MessageKind::kDeferred:
      if (before != State::kSent && before != State::kAnnounced) return false;
      part.state = State::kDeferred;
      queue_.Received(part.ticket);
      OnDeferred(push, partition);
      break;
    case MessageKind::kPushWanted:
      if (before == State::kDeferred || before == State::kAnnounced) {
        QueueAgain(part);
        return true;
      }
      if (before != State::kSent) return false;
      SendAgain(push, partition, now);  // kDeferred is late or lost: it still holds credit
      return true;
    default:
      return false;
  }
  if (before == State::kSent) {
    TraceAnswer(options_.trace, push, partition);
    payloads_.OnArrived(push, partition, now);
  }
  const bool received = part.state == State::kReceived || part.state == State::kCommitted;
  if (options_.frees_gradients && received && before != State::kReceived) {
    payloads_.LetGo(push, partition);
    if (--push.unreceived == 0) ReportReceived(push);
  }
  return true;
}

void PushTable::ReportReceived(OpenPush& push) {
  push.unreceived = 0;
  push.request.gradient = Lease();
  push.request.frames = {};
  if (!sinks_.received) return;
  sinks_.received({push.request.block, push.request.virtual_worker, push.request.clock});
}

void PushTable::Finish(uint32_t place) {
  OpenPush& push = pushes_.at(place);
  if (options_.frees_gradients && push.unreceived > 0) ReportReceived(push);
  const PushCommitted event{push.request.block, push.request.virtual_worker, push.request.clock,
                            push.dropped, push.lost};
  pushes_.Close(place);
  sinks_.committed(event);
}

// ---- again ----

void PushTable::OnTick(absl::Time now) {
  if (now < next_due_) return;
  next_due_ = absl::InfiniteFuture();
  pushes_.ForEach([&](uint32_t, OpenPush& push) {
    for (uint32_t p = 0; p < push.partitions.size(); ++p) {
      PartitionPush& part = push.partitions[p];
      if (!part.unanswered()) continue;
      if (now >= part.due) {
        // A received push may wait long for a straggler, so repeats become rarer. The patience is
        // bounded: while one partition waits, all others of the step reach the same patience, and
        // each lost reply then costs that long.
        part.patience = std::min(part.patience * 2, kMaxPatience * resend_after_);
        Repeat(push, p, now);
      }
      if (part.state != State::kWanted) next_due_ = std::min(next_due_, part.due);
    }
  });
  SendQueued(now);
}

void PushTable::SendAllAgain(absl::Time now) {
  pushes_.ForEach([&](uint32_t, OpenPush& push) {
    for (uint32_t p = 0; p < push.partitions.size(); ++p) {
      PartitionPush& part = push.partitions[p];
      part.patience = resend_after_;
      if (part.state == State::kReceived && !options_.frees_gradients) {
        ++counters_.resent;
        QueueAgain(part);
      } else if (part.unanswered()) {
        Repeat(push, p, now);
      }
    }
  });
  SendQueued(now);
}

// A lane that is not short of memory has deferred the push because it was out of order: it queues
// again.
void PushTable::Repeat(OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& part = push.partitions[partition];
  ++counters_.resent;
  if (part.state == State::kDeferred || part.state == State::kAnnounced) {
    IsShort(push, partition) ? Announce(push, partition, now) : QueueAgain(part);
  } else if (part.state == State::kReceived && options_.frees_gradients) {
    SendHeader(MessageKind::kPushAsked, push, partition, now);
  } else {
    SendAgain(push, partition, now);  // its credit stays as it was: held or returned
  }
}

// A received partition may only have been announced and have no frames yet: the lane has it from
// the virtual worker's previous worker.
void PushTable::SendAgain(OpenPush& push, uint32_t partition, absl::Time now) {
  payloads_.Encode(push, partition);
  Send(push, partition, now);
  payloads_.Forget(push.partitions[partition]);
}

void PushTable::QueueAgain(PartitionPush& part) {
  part.state = State::kWanted;
  if (part.sent_ns > 0) TraceQueued(options_.trace, part);  // else it has been queued since Add
  queue_.EnqueueAgain(part.ticket);
}

void PushTable::CutAllAgain(absl::Time now) {
  payloads_.RestartLinks();
  short_until_.clear();
  pushes_.ForEach([&](uint32_t place, OpenPush& push) {
    const bool whole = push.unreceived == push.partitions.size();
    for (const PartitionPush& part : push.partitions) {
      if (part.state != State::kCommitted) queue_.Committed(part.ticket);
      if (part.unanswered()) ++counters_.resent;
    }
    if (options_.frees_gradients && !whole) {
      push.uncommitted = 0;
      push.lost = true;
      return Finish(place);
    }
    const std::shared_ptr<const PartitionPlan> plan = std::move(push.plan);
    const std::vector<PartitionPush> partitions = std::move(push.partitions);
    Cut(place, [&](const Partition& part) {
      return LowestVersion(plan->of_block(push.request.block), partitions, part);
    });
  });
  SendQueued(now);
}

void PushTable::GiveUpAllBut(std::span<const uint32_t> virtual_workers, absl::Time now) {
  pushes_.ForEach([&](uint32_t place, OpenPush& push) {
    if (std::find(virtual_workers.begin(), virtual_workers.end(), push.request.virtual_worker) !=
        virtual_workers.end()) {
      return;
    }
    for (const PartitionPush& part : push.partitions) {
      if (part.state != State::kCommitted) queue_.Committed(part.ticket);
    }
    push.uncommitted = 0;
    push.dropped = true;
    Finish(place);
  });
  encoder_.GiveUpAllBut(virtual_workers);
  payloads_.RestartLinks();
  SendQueued(now);
}

}  // namespace tug
