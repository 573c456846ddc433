// SPDX-License-Identifier: Apache-2.0
#include "control/trace_messages.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

TraceRange TracedClocks(const TraceConfig& config, uint64_t start_version) {
  if (config.steps() == 0) return {};
  const uint64_t first = start_version + config.first_step() - 1;
  return {first, first + config.steps()};
}

TraceRange RecordedClocks(const TraceConfig& config, uint64_t start_version) {
  TraceRange range = TracedClocks(config, start_version);
  if (range.first > start_version) --range.first;
  return range;
}

TracedSpan ToMessage(const TraceEvent& event) {
  TracedSpan span;
  span.set_kind(static_cast<uint32_t>(event.kind));
  span.set_block(event.block);
  span.set_first_segment(event.first_segment);
  span.set_segment_count(event.segment_count);
  span.set_virtual_worker(event.virtual_worker);
  span.set_peer(event.peer);
  span.set_clock(event.clock);
  span.set_bytes(event.bytes);
  span.set_begin_ns(event.begin_ns);
  span.set_duration_ns(static_cast<uint64_t>(std::max<int64_t>(0, event.end_ns - event.begin_ns)));
  return span;
}

std::optional<TraceEvent> FromMessage(const TracedSpan& span, int64_t offset_ns) {
  // Bounds some decades around ours (2^60 ns are 36 years, already past), so that no sum and no
  // difference of two times overflows.
  const auto out = [](int64_t ns) {
    constexpr int64_t kMost = int64_t{1} << 61;
    return ns < -kMost || ns > kMost;
  };
  if (span.kind() >= kTraceKinds || span.duration_ns() > uint64_t{1} << 60 ||
      out(span.begin_ns()) || out(offset_ns) || out(span.begin_ns() + offset_ns)) {
    return std::nullopt;
  }
  TraceEvent event;
  event.kind = static_cast<TraceKind>(span.kind());
  event.block = span.block();
  event.first_segment = span.first_segment();
  event.segment_count = span.segment_count();
  event.virtual_worker = span.virtual_worker();
  event.peer = span.peer();
  event.clock = span.clock();
  event.bytes = span.bytes();
  event.begin_ns = span.begin_ns() + offset_ns;
  event.end_ns = event.begin_ns + static_cast<int64_t>(span.duration_ns());
  return event;
}

TraceUpload::TraceUpload(const Trace& trace, ClockOffset::Estimate clock)
    : trace_(trace), clock_(clock) {}

TraceChunk TraceUpload::Next(uint32_t node_id, uint64_t job) const {
  TUG_CHECK(!done());
  const TraceTrack& track = trace_.track(track_);
  TraceChunk chunk;
  chunk.set_node_id(node_id);
  chunk.set_job(job);
  chunk.set_sequence(sequence_);
  chunk.set_track(static_cast<uint32_t>(track_));
  chunk.set_track_name(track.name());
  chunk.set_dropped(track.dropped());
  chunk.set_clock_offset_ns(clock_.offset_ns);
  chunk.set_clock_error_ns(static_cast<uint64_t>(clock_.error_ns));
  const std::span<const TraceEvent> events = track.events();
  const size_t end = std::min(events.size(), event_ + kTraceChunkEvents);
  for (size_t i = event_; i < end; ++i) *chunk.add_spans() = ToMessage(events[i]);
  return chunk;
}

void TraceUpload::Confirm() {
  ++sequence_;
  event_ += kTraceChunkEvents;
  if (event_ < trace_.track(track_).events().size()) return;
  ++track_;
  event_ = 0;
}

}  // namespace tug
