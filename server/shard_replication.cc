// Copies: of this lane's segments at other lanes, and of others' segments here.
#include <utility>

#include "base/check.h"
#include "server/shard.h"

namespace tug {

WireHeader Shard::SegmentHeader(MessageKind kind, uint32_t segment) const {
  WireHeader header = Header(kind);
  header.block = table_.segment(segment).block;
  header.first_segment = table_.segment(segment).index;
  header.segment_count = 1;
  return header;
}

// ---- the owner's side ----

void Shard::Replicate() {
  if (!replication_.has_value()) return;
  std::vector<Replication::Request>& requests = replication_->requests();
  std::vector<uint32_t>& acknowledged = replication_->acknowledged();
  // What is applied, and sent, may bring more of both.
  while (!requests.empty() || !acknowledged.empty()) {
    const std::vector<Replication::Request> to_send = std::exchange(requests, {});
    const std::vector<uint32_t> to_apply = std::exchange(acknowledged, {});
    for (const Replication::Request& request : to_send) SendRequest(request);
    for (const uint32_t id : to_apply) ApplyAcknowledged(id);
  }
}

void Shard::SendRequest(const Replication::Request& request) {
  WireHeader header = SegmentHeader(request.kind, request.segment);
  header.version = states_[request.segment]->version;
  header.token_count = request.number;
  Lease payload;
  if (request.kind == MessageKind::kUpdate) {
    payload = UpdatePayload(request.segment);
    if (update_per_push_) {
      const WireHeader& push = queued_->Front(request.segment).payload.header();
      header.virtual_worker = push.virtual_worker;
      header.virtual_worker_count = 1;
      header.clock = push.clock;
    }
  } else if (request.kind == MessageKind::kCopy) {
    const HeldSegment held = *Held(request.segment);
    SendBuffers::Payload copy = copy_buffers_.Take(CopyPayloadBytes(held));
    WriteCopyPayload(held, copy.bytes);
    payload = std::move(copy.lease);
  }
  sinks_.send({LanePeer(request.lane), header, std::move(payload)});
}

// Made when it is first sent; then it is what will be applied.
Lease Shard::UpdatePayload(uint32_t segment) {
  UnderWay& under_way = under_way_[segment];
  if (under_way.payload.size_bytes() > 0) return under_way.payload;
  SegmentUpdate update;
  if (update_per_push_) {
    const QueuedPushes::Push& push = queued_->Front(segment);
    AddAlone(segment, push.payload);
    update = UpdateByPush(segment, push.payload.header(), under_way.flags);
  } else {
    update = UpdateBySum(segment);
  }
  SendBuffers::Payload payload = copy_buffers_.Take(UpdatePayloadBytes(update));
  WriteUpdatePayload(update, payload.bytes);
  under_way.payload = std::move(payload.lease);
  // A sum of several is kept, to tell repeats by.
  if (update_per_push_) states_[segment]->sum.Clear();
  return under_way.payload;
}

void Shard::ApplyAcknowledged(uint32_t segment) {
  UnderWay under_way = std::exchange(under_way_[segment], {});
  std::optional<SegmentUpdate> sent;
  if (under_way.payload.size_bytes() > 0) {
    sent = ReadUpdatePayload(under_way.payload.bytes(), table_.segment(segment).elements());
    TUG_CHECK(sent.has_value());
  }
  if (!update_per_push_) {
    ApplySum(segment, sent.has_value() ? *sent : UpdateBySum(segment));
    replication_->Applied(segment, now_);
    return;
  }
  const QueuedPushes::Push& push = queued_->Front(segment);
  const WireHeader header = push.payload.header();
  if (!sent.has_value()) {
    AddAlone(segment, push.payload);
    sent = UpdateByPush(segment, header, under_way.flags);
  }
  ApplyPush(segment, header, push.exact, *sent, under_way.flags);
  replication_->Applied(segment, now_);
  AfterQueued(segment, header);
}

// ---- pushes that are updates ----

bool Shard::AnswerIfQueued(const PushKey& key) {
  for (const uint32_t id : open_segments_) {
    const QueuedPushes::Push* const push = queued_->Find(id, key.virtual_worker);
    if (push == nullptr) continue;
    if (KeyOf(push->payload.header()) == key) {
      ++counters_.repeats;
      ReplyToPush(MessageKind::kReceived, key, key.clock);
      return true;
    }
    // Somebody else's, or cut in other ways: asked for when that one is applied.
    DeferUpdate(key);
    return true;
  }
  return false;
}

void Shard::DeferUpdate(const PushKey& key) {
  ++counters_.deferred;
  early_.Defer(key);
  ReplyToPush(MessageKind::kDeferred, key, key.clock);
}

void Shard::Queue(bool exact) {
  const PushKey key = KeyOf(push_.header());
  if (push_.own() && !queued_->HasRoom(push_.size_bytes())) return DeferUpdate(key);
  ReplyToPush(MessageKind::kReceived, key, key.clock);
  queued_->Add(push_, exact, open_segments_);
  for (const uint32_t id : open_segments_) {
    if (!replication_->under_way(id)) replication_->Offer(id, now_);
  }
}

// The first push of the segment's queue is applied to it.
void Shard::AfterQueued(uint32_t segment, const WireHeader& header) {
  // Who is told kCommitted finds the payload released.
  if (queued_->Pop(segment)) {
    const uint32_t first = FirstId(header);
    uint64_t version = states_[first]->version;
    for (uint32_t id = first; id < first + header.segment_count; ++id) {
      version = std::min(version, states_[id]->version);
    }
    ReplyToPush(MessageKind::kCommitted, KeyOf(header), version);
  }
  AnswerAfter(segment, header.virtual_worker);
  // There is room, too, for those that were deferred for want of it, of any block.
  const auto wait = [this](const PushKey& other) { return IsEarly(other) || !queued_->HasRoom(0); };
  for (uint32_t block = 0; block < table_.num_blocks() && early_.size() > 0; ++block) {
    early_.TakeWanted(block, now_, wait, wanted_);
  }
  if (!queued_->empty(segment)) replication_->Offer(segment, now_);
}

// ---- the copy's side, and what it says ----

void Shard::SayCopied(uint32_t segment, uint64_t number) {
  WireHeader header = SegmentHeader(MessageKind::kCopied, segment);
  header.version = copies_.version(segment);
  header.token_count = number;
  sinks_.send({LanePeer(options_.lane_of_segment[segment]), header, Lease()});
}

void Shard::OnCopyMessage(const Message& message) {
  const WireHeader& header = message.header;
  if (IsWorker(header.sender) || header.block >= table_.num_blocks() || header.segment_count != 1 ||
      header.first_segment >= table_.segments_in_block(header.block)) {
    return Malformed(header, "is of a copy that there is not");
  }
  const uint32_t segment = FirstId(header);
  const uint32_t lane = header.sender - LanePeer(0);
  if (header.kind == MessageKind::kCopied) {
    const bool known = states_[segment] != nullptr && replication_.has_value() &&
                       replication_->OnCopied(lane, segment, header.version,
                                              states_[segment]->version, header.token_count, now_);
    if (!known) Malformed(header, "is word of a copy that this lane has not given");
    return;
  }
  if (!copies_.has(segment) || lane != options_.lane_of_segment[segment] ||
      !TakeForCopy(segment, message)) {
    return Malformed(header, "is not for a copy of this lane");
  }
  SayCopied(segment, header.token_count);
}

bool Shard::TakeForCopy(uint32_t segment, const Message& message) {
  const WireHeader& header = message.header;
  const std::span<const std::byte> payload = message.payload.bytes();
  switch (header.kind) {
    case MessageKind::kUpdate:
      return copies_.OnUpdate(segment, header.version, header.virtual_worker, payload);
    case MessageKind::kCopy:
      return copies_.OnCopy(segment, header.version, payload);
    default:
      return true;
  }
}

}  // namespace tug
