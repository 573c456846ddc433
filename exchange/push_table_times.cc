// What becomes of pushes, told to traces, and with comm.push_codec.auto to what learns of links.
#include <utility>

#include "exchange/exchange_header.h"
#include "exchange/push_table.h"

namespace tug {

// ---- links ----

void PushTable::MeasureSending(OpenPush& push, uint32_t partition, absl::Time now) {
  LinkRate* const link = encoder_.LinkTo(PartOf(push, partition).lane);
  if (link == nullptr) return;
  push.partitions[partition].sent = link->OnSent(MomentOf(now));
}

void PushTable::MeasureAnswer(OpenPush& push, uint32_t partition, absl::Time now) {
  PartitionPush& part = push.partitions[partition];
  LinkRate* const link = encoder_.LinkTo(PartOf(push, partition).lane);
  if (link != nullptr) {
    link->OnDelivered(part.sent, BytesOf(part), MomentOf(now));
  }
  ForgetSending(part);
}

void PushTable::ForgetSending(PartitionPush& part) {
  part.sent = {};
  if (std::exchange(part.probes, false)) probes_ = false;
}

LinkRate::Moment PushTable::MomentOf(absl::Time now) const {
  return {NowOf(options_, now), absl::Seconds(counters_.encode_seconds)};
}

// ---- trace ----

TraceEvent PushTable::EventOf(TraceKind kind, const OpenPush& push, uint32_t partition) const {
  const Partition& part = PartOf(push, partition);
  const PartitionPush& state = push.partitions[partition];
  return {.kind = kind,
          .block = part.block,
          .first_segment = part.first_segment,
          .segment_count = part.segment_count,
          .virtual_worker = push.request.virtual_worker,
          .peer = part.lane,
          .clock = push.request.clock,
          .bytes = state.frames.size_bytes() > 0 ? state.frames.size_bytes() : state.bytes};
}

void PushTable::TraceQueued(PartitionPush& part) const {
  if (options_.trace != nullptr) part.queued_ns = options_.trace->NowNs();
}

void PushTable::TraceSending(OpenPush& push, uint32_t partition) {
  if (options_.trace == nullptr) return;
  PartitionPush& part = push.partitions[partition];
  part.sent_ns = options_.trace->NowNs();
  TraceEvent event = EventOf(TraceKind::kQueue, push, partition);
  event.begin_ns = part.queued_ns;
  event.end_ns = part.sent_ns;
  options_.trace->Add(event);
}

void PushTable::TraceAnswer(const OpenPush& push, uint32_t partition) {
  if (options_.trace == nullptr) return;
  TraceEvent event = EventOf(TraceKind::kPush, push, partition);
  event.begin_ns = push.partitions[partition].sent_ns;
  event.end_ns = options_.trace->NowNs();
  options_.trace->Add(event);
}

}  // namespace tug
