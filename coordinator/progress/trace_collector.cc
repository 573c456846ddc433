// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/trace_collector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/trace_messages.h"

namespace tug {
namespace {

constexpr uint64_t kMaxClockErrorNs = uint64_t{1} << 60;  // a larger value is invalid

}  // namespace

absl::Status TraceCollector::Add(const TraceChunk& chunk) {
  Sender& sender = senders_[chunk.node_id()];
  if (chunk.sequence() < sender.next) return absl::OkStatus();  // a repeat
  const size_t tracks = sender.node.tracks.size();
  const bool next_track = chunk.track() == tracks && tracks < kMaxTracks;
  if (chunk.sequence() > sender.next || (!next_track && chunk.track() + 1 != tracks)) {
    return absl::InvalidArgumentError("a trace chunk is out of sequence");
  }
  if (chunk.track_name().size() > kMaxTrackName) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a trace track is too long (",
                                                   chunk.track_name().size(), " bytes)"));
  }
  const auto spans = static_cast<size_t>(chunk.spans_size());
  if (spans > kTraceChunkEvents || spans > kMaxEvents - events_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all nodes together recorded more than ", kMaxEvents,
                     " spans: trace fewer steps (--trace-steps A..B)"));
  }
  if (next_track) sender.node.tracks.push_back({.name = chunk.track_name()});
  TracedTrack& track = sender.node.tracks.back();
  track.dropped = chunk.dropped();
  sender.node.clock_error_ns = std::min(chunk.clock_error_ns(), kMaxClockErrorNs);
  for (const TracedSpan& span : chunk.spans()) {
    if (const auto event = FromMessage(span, chunk.clock_offset_ns())) {
      track.events.push_back(*event);
      ++events_;
    }
  }
  ++sender.next;
  return absl::OkStatus();
}

std::map<uint32_t, TracedNode> TraceCollector::Take() {
  std::map<uint32_t, TracedNode> nodes;
  for (auto& [id, sender] : senders_) nodes[id] = std::move(sender.node);
  senders_.clear();
  events_ = 0;
  return nodes;
}

}  // namespace tug
