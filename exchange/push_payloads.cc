// SPDX-License-Identifier: Apache-2.0
#include "exchange/push_payloads.h"

#include <utility>

#include "base/elapsed.h"
#include "blocks/exchange_header.h"

namespace tug {

void PushPayloads::Choose(OpenPush& push, uint32_t partition) const {
  const PushRequest& request = push.request;
  const Partition& part = push.PartOf(partition);
  PartitionPush& state = push.partitions[partition];
  state.bytes = part.bytes();
  if (encoder_.Encodes(part, request.clock)) {
    state.codec = Codec::kFrames;
    state.bytes = encoder_.MaxBytes(part, request.clock);
  } else if (!request.runs.empty()) {
    const uint64_t bytes = EncodedBytes(Clip(request.runs, part.begin, part.end), true);
    if (bytes >= part.bytes()) return;
    state.codec = Codec::kRuns;
    state.bytes = bytes;
  }
}

void PushPayloads::Encode(OpenPush& push, uint32_t partition) {
  PartitionPush& state = push.partitions[partition];
  if (state.codec != Codec::kFrames || state.frames.size_bytes() > 0) return;
  const Partition& part = push.PartOf(partition);
  const bool encodes = encoder_.Choose(push.request, part, push.encoded);
  state.probes = encoder_.TakeProbe(part.lane);
  if (!encodes) {
    state.codec = Codec::kNone;
    state.bytes = part.bytes();
    return;
  }
  TraceSpan span(options_.trace, push.EventOf(TraceKind::kEncode, partition));
  const ElapsedSeconds elapsed(options_.time, counters_.encode_seconds);
  state.frames = encoder_.Encode(push.request, part, push.encoded);
  span.set_bytes(state.frames.size_bytes());
}

void PushPayloads::EncodeUnsent(OpenPush& push) {
  for (uint32_t p = 0; p < push.partitions.size(); ++p) {
    if (push.partitions[p].unsent()) Encode(push, p);
  }
}

Lease PushPayloads::PayloadOf(const OpenPush& push, uint32_t partition) {
  const PartitionPush& state = push.partitions[partition];
  const Partition& part = push.PartOf(partition);
  const Lease& gradient = push.request.gradient;
  if (state.codec == Codec::kFrames) return state.frames;
  if (state.codec == Codec::kNone) return gradient.Slice(part.begin * sizeof(float), part.bytes());
  const TraceSpan span(options_.trace, push.EventOf(TraceKind::kEncode, partition));
  SendBuffers::Payload payload = buffers_.Take(state.bytes);
  EncodeRuns(Clip(push.request.runs, part.begin, part.end),
             gradient.floats().subspan(part.begin, part.end - part.begin), payload.bytes);
  return std::move(payload.lease);
}

void PushPayloads::LetGo(OpenPush& push, uint32_t partition) {
  push.partitions[partition].frames = Lease();
  if (push.encoded.segments.empty()) return;
  const Partition& part = push.PartOf(partition);
  for (uint32_t s = part.first_segment; s < part.first_segment + part.segment_count; ++s) {
    push.encoded.segments[s].frame = Lease();
  }
}

// ---- links ----

void PushPayloads::OnSending(OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& part = push.partitions[partition];
  LinkRate* const link = encoder_.LinkTo(push.PartOf(partition).lane);
  if (link != nullptr) part.sent = link->OnSent(MomentOf(now));
  probing_ = part.probes;
}

void PushPayloads::OnArrived(OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& part = push.partitions[partition];
  LinkRate* const link = encoder_.LinkTo(push.PartOf(partition).lane);
  if (link != nullptr) link->OnDelivered(part.sent, part.payload_bytes(), MomentOf(now));
  Forget(part);
}

void PushPayloads::Forget(PartitionPush& part) {
  part.sent = {};
  if (std::exchange(part.probes, false)) probing_ = false;
}

void PushPayloads::RestartLinks() {
  encoder_.RestartLinks();
  probing_ = false;
}

LinkRate::Moment PushPayloads::MomentOf(absl::Time now) const {
  return {NowOf(options_, now), absl::Seconds(counters_.encode_seconds)};
}

}  // namespace tug
