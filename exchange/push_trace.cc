#include "exchange/push_trace.h"

namespace tug {

TraceEvent PushEventOf(TraceKind kind, const OpenPush& push, uint32_t partition) {
  const Partition& part = push.PartOf(partition);
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

void TraceQueued(const TraceTrack* track, PartitionPush& part) {
  if (track != nullptr) part.queued_ns = track->NowNs();
}

void TraceSending(TraceTrack* track, OpenPush& push, uint32_t partition) {
  if (track == nullptr) return;
  PartitionPush& part = push.partitions[partition];
  part.sent_ns = track->NowNs();
  TraceEvent event = PushEventOf(TraceKind::kQueue, push, partition);
  event.begin_ns = part.queued_ns;
  event.end_ns = part.sent_ns;
  track->Add(event);
}

void TraceAnswer(TraceTrack* track, const OpenPush& push, uint32_t partition) {
  if (track == nullptr) return;
  TraceEvent event = PushEventOf(TraceKind::kPush, push, partition);
  event.begin_ns = push.partitions[partition].sent_ns;
  event.end_ns = track->NowNs();
  track->Add(event);
}

}  // namespace tug
