// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard_copies.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "blocks/view_lanes.h"
#include "blocks/weights_payload.h"

namespace tug {
namespace {

std::vector<uint32_t> CopiedSegments(const ShardOptions& options) {
  std::vector<uint32_t> copied;
  for (uint32_t id = 0; id < options.copies.size(); ++id) {
    const std::vector<uint32_t>& lanes = options.copies[id];
    if (std::find(lanes.begin(), lanes.end(), options.lane) != lanes.end()) copied.push_back(id);
  }
  return copied;
}

bool IsCopied(const ShardOptions& options, std::span<const uint32_t> owned) {
  return !options.copies.empty() && std::any_of(owned.begin(), owned.end(), [&](uint32_t id) {
    return !options.copies[id].empty();
  });
}

CopyStore::Options StoreOptions(const ShardOptions& options, const OwnSegments& own) {
  return {.start_version = options.start_version,
          .counted_clocks = own.own_clocks() ? options.virtual_workers : 0,
          .pull_codec = WeightsCodecOf(options.pull_format),
          .shadow = ShadowOptionsOf(options),
          .leave_out_update = options.leave_out_update,
          .memory = options.memory};
}

Replication::Options ReplicationOptions(const ShardOptions& options, const OwnSegments& own) {
  const uint64_t bytes = 4 + (own.optimizer().keeps_m() ? 4 : 0) +
                         (own.optimizer().keeps_v() ? 4 : 0) + (own.own_clocks() ? 0 : 4) +
                         (options.pull_format == CommConfig::CHANGES ? 4 : 0);
  return {.resend_first = FirstResend(options),
          .resend_most = options.resend_after,
          .update_bytes = options.parking_bytes,
          .copy_bytes = options.parking_bytes / 4,
          .bytes_per_element = bytes};
}

}  // namespace

ShardCopies::ShardCopies(ShardContext& context, OwnSegments& own)
    : context_(context),
      own_(own),
      store_(StoreOptions(context.options, own), context.table, CopiedSegments(context.options),
             own.optimizer()),
      buffers_(IsCopied(context.options, own.ids()) ? context.options.parking_bytes : 0,
               context.options.new_buffer) {
  if (!IsCopied(context.options, own.ids())) return;
  replication_.emplace(ReplicationOptions(context.options, own), context.table, own.ids(),
                       context.options.copies);
  under_way_.resize(context.table.size());
}

// ---- the owner's side ----

void ShardCopies::Replicate(CopiedUpdates& updates) {
  if (!replicates()) return;
  std::vector<Replication::Request>& requests = replication_->requests();
  std::vector<uint32_t>& acknowledged = replication_->acknowledged();
  // Applying and sending may add more of both.
  while (!requests.empty() || !acknowledged.empty()) {
    const std::vector<Replication::Request> to_send = std::exchange(requests, {});
    const std::vector<uint32_t> to_apply = std::exchange(acknowledged, {});
    for (const Replication::Request& request : to_send) Send(request, updates);
    for (const uint32_t id : to_apply) Apply(id, updates);
  }
}

void ShardCopies::Send(const Replication::Request& request, CopiedUpdates& updates) {
  WireHeader header = context_.SegmentHeader(request.kind, request.segment);
  header.version = own_.state(request.segment).version;
  header.ack_id = request.number;
  Lease payload;
  if (request.kind == MessageKind::kUpdate) {
    payload = UpdatePayload(request.segment, updates);
    updates.NameUpdate(request.segment, header);
  } else if (request.kind == MessageKind::kCopy) {
    const HeldSegment held = own_.Held(request.segment);
    SendBuffers::Payload copy = buffers_.Take(CopyPayloadBytes(held));
    WriteCopyPayload(held, copy.bytes);
    payload = std::move(copy.lease);
  }
  context_.sinks.send({LanePeer(request.lane), header, std::move(payload)});
}

// Built when it is first sent; the same bytes are applied later.
const Lease& ShardCopies::UpdatePayload(uint32_t segment, CopiedUpdates& updates) {
  UnderWay& under_way = under_way_[segment];
  if (under_way.payload.size_bytes() > 0) return under_way.payload;
  const SegmentUpdate update = updates.NextUpdate(segment, under_way.record_flags);
  SendBuffers::Payload payload = buffers_.Take(UpdatePayloadBytes(update));
  WriteUpdatePayload(update, payload.bytes);
  under_way.payload = std::move(payload.lease);
  updates.OnUpdateWritten(segment);
  return under_way.payload;
}

void ShardCopies::Apply(uint32_t segment, CopiedUpdates& updates) {
  UnderWay under_way = std::exchange(under_way_[segment], {});
  std::optional<SegmentUpdate> update;
  if (under_way.payload.size_bytes() > 0) {
    const uint64_t elements = context_.table.segment(segment).elements();
    update = ReadUpdatePayload(under_way.payload.bytes(), elements);
    TUG_CHECK(update.has_value());
  } else {
    update = updates.NextUpdate(segment, under_way.record_flags);
  }
  updates.ApplyOffered(segment, *update, under_way.record_flags);
  replication_->Applied(segment, context_.now);
  updates.AfterOffered(segment);
}

void ShardCopies::AskAll() {
  if (replicates()) replication_->AskAll(context_.now);
}

void ShardCopies::OnTick() {
  if (replicates()) replication_->OnTick(context_.now);
}

void ShardCopies::EnterView() {
  for (const uint32_t id : store_.segments()) SendCopied(id, 0);
  if (replicates()) replication_->AskAgain(context_.now);
}

// ---- the replica's side ----

void ShardCopies::SendCopied(uint32_t segment, uint64_t number) {
  WireHeader header = context_.SegmentHeader(MessageKind::kCopied, segment);
  header.version = store_.version(segment);
  header.ack_id = number;
  context_.sinks.send({LanePeer(context_.options.lane_of_segment[segment]), header, Lease()});
}

void ShardCopies::OnMessage(const Message& message) {
  const WireHeader& header = message.header;
  if (IsWorker(header.sender) || !context_.RangeExists(header) || header.segment_count != 1) {
    return context_.Malformed(header, "targets a segment that does not exist");
  }
  const uint32_t segment = context_.FirstId(header);
  if (header.kind == MessageKind::kCopied) {
    if (OnCopied(header, segment)) return;
    return context_.Malformed(header, "acknowledges a replica that this lane did not send");
  }
  if (!store_.has(segment) ||
      header.sender != LanePeer(context_.options.lane_of_segment[segment]) ||
      !ApplyToReplica(segment, message)) {
    return context_.Malformed(header, "targets a replica that this lane does not hold");
  }
  SendCopied(segment, header.ack_id);
}

bool ShardCopies::OnCopied(const WireHeader& header, uint32_t segment) {
  return own_.has(segment) && replicates() &&
         replication_->OnCopied(header.sender - LanePeer(0), segment, header.version,
                                own_.state(segment).version, header.ack_id, context_.now);
}

bool ShardCopies::ApplyToReplica(uint32_t segment, const Message& message) {
  const WireHeader& header = message.header;
  const std::span<const std::byte> payload = message.payload.bytes();
  switch (header.kind) {
    case MessageKind::kUpdate:
      return store_.OnUpdate(segment, header.version, header.virtual_worker, payload);
    case MessageKind::kCopy:
      return store_.OnCopy(segment, header.version, payload);
    default:
      return true;
  }
}

}  // namespace tug
