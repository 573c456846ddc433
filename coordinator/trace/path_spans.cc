// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/path_spans.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/trace/trace_figures.h"

namespace tug {
namespace {

constexpr int64_t kEver = std::numeric_limits<int64_t>::min();

bool Overlap(const TraceEvent& a, const TraceEvent& b) {
  return a.first_segment < b.first_segment + b.segment_count &&
         b.first_segment < a.first_segment + a.segment_count;
}

int64_t EndOf(const PathSpan& span) { return span.event->end_ns; }

template <typename Map>
void SortByEnd(Map& map) {
  for (auto& [key, spans] : map) std::ranges::stable_sort(spans, {}, EndOf);
}

bool Any(const PathSpan&) { return true; }

}  // namespace

PathSpans::PathSpans(const JobTrace& trace) : trace_(trace) {
  for (const TracedNode& node : trace.nodes) {
    nodes_[node.node_id] = &node;
    const bool has_device = std::ranges::any_of(node.tracks, IsOfDevice);
    for (uint32_t track = 0; track < node.tracks.size(); ++track) Take(node, track, has_device);
  }
  for (auto& [node, events] : computing_) {
    std::ranges::stable_sort(events, [](const TraceEvent* a, const TraceEvent* b) {
      return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
    });
  }
  for (auto& [track, events] : work_) {
    std::ranges::stable_sort(events, {}, &TraceEvent::end_ns);
  }
  SortByEnd(pulls_of_block_);
  SortByEnd(pulls_from_lane_);
  SortByEnd(pushes_);
  for (auto* map : {&push_, &queue_, &sum_, &serve_, &backward_}) SortByEnd(*map);
  SortByEnd(updates_);
  SortByEnd(sums_);
  SortByEnd(sums_of_clock_);
}

void PathSpans::Take(const TracedNode& node, uint32_t track, bool device_computes) {
  const TracedTrack& recorded = node.tracks[track];
  const bool computes = !device_computes || IsOfDevice(recorded);
  for (const TraceEvent& event : recorded.events) {
    ProcessEvent({&event, node.node_id, track}, computes);
  }
}

void PathSpans::ProcessEvent(const PathSpan& span, bool computes) {
  const TraceEvent& event = *span.event;
  const Key key = KeyOf(span.node, event);
  switch (event.kind) {
    case TraceKind::kStep:
      steps_[event.clock].push_back(span);
      return;
    case TraceKind::kBackward:
      if (computes) backward_[key].push_back(span);
      [[fallthrough]];
    case TraceKind::kForward:
    case TraceKind::kEvaluate:
      if (computes) computing_[span.node].push_back(&event);
      return;
    case TraceKind::kWait:
      computing_[span.node].push_back(&event);
      return;
    case TraceKind::kQueue:
      queue_[key].push_back(span);
      return;
    case TraceKind::kPush:
      push_[key].push_back(span);
      pushes_[span.node].push_back(span);
      return;
    case TraceKind::kPull:
      pulls_of_block_[{span.node, event.block}].push_back(span);
      pulls_from_lane_[{span.node, event.peer}].push_back(span);
      return;
    case TraceKind::kEncode:
    case TraceKind::kDecode:
      work_[{span.node, span.track}].push_back(&event);
      return;
    case TraceKind::kSum:
      work_[{span.node, span.track}].push_back(&event);
      sum_[KeyOf(event.peer, event)].push_back(span);
      sums_[{event.block, event.clock}].push_back(span);
      sums_of_clock_[event.clock].push_back(span);
      return;
    case TraceKind::kOptimizer:
      work_[{span.node, span.track}].push_back(&event);
      updates_[{event.block, event.clock}].push_back(span);
      return;
    case TraceKind::kServe:
      work_[{span.node, span.track}].push_back(&event);
      serve_[PullKeyOf(event.peer, event)].push_back(span);
      return;
  }
}

// ---- names and clocks ----

std::string PathSpans::NodeName(uint32_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? absl::StrCat("lost node ", node) : found->second->name;
}

std::string PathSpans::BlockName(uint32_t block) const {
  return block < trace_.block_names.size() ? trace_.block_names[block] : absl::StrCat(block);
}

int64_t PathSpans::ToleranceNs(uint32_t a, uint32_t b) const {
  if (a == b) return 0;
  uint64_t tolerance = 0;
  for (const uint32_t node : {a, b}) {
    const auto found = nodes_.find(node);
    if (found != nodes_.end()) tolerance += found->second->clock_error_ns;
  }
  return static_cast<int64_t>(tolerance);
}

// ---- look-ups ----

PathSpans::Key PathSpans::KeyOf(uint32_t worker, const TraceEvent& event) {
  return {worker, event.virtual_worker, event.block, event.first_segment, event.clock};
}

PathSpans::Key PathSpans::PullKeyOf(uint32_t worker, const TraceEvent& event) {
  return {worker, 0, event.block, event.first_segment, event.clock};
}

// Empty if the key is missing.
template <typename Map>
const typename Map::mapped_type& PathSpans::Of(const Map& map, const typename Map::key_type& key) {
  static const typename Map::mapped_type kNone;
  const auto found = map.find(key);
  return found == map.end() ? kNone : found->second;
}

const std::vector<const TraceEvent*>& PathSpans::Computing(uint32_t worker) const {
  return Of(computing_, worker);
}

const std::vector<const TraceEvent*>& PathSpans::Work(uint32_t node, uint32_t track) const {
  return Of(work_, {node, track});
}

PathSpan PathSpans::LastIn(const Spans& by_end, int64_t after_ns, int64_t until_ns) {
  const auto next = std::ranges::upper_bound(by_end, until_ns, {}, EndOf);
  if (next == by_end.begin() || EndOf(*(next - 1)) <= after_ns) return {};
  return *(next - 1);
}

// Newest span that satisfies the conditions. Spans of other nodes may seem to end later by the
// error bounds of the clocks.
template <typename Holds>
PathSpan PathSpans::LastOf(const Spans& spans, uint32_t node, int64_t after_ns, int64_t until_ns,
                           Holds holds) const {
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    const int64_t end_ns = span->event->end_ns;
    const int64_t tolerance_ns = ToleranceNs(node, span->node);
    if (end_ns <= until_ns + tolerance_ns && end_ns > after_ns && holds(*span)) return *span;
  }
  return {};
}

PathSpan PathSpans::PullOfBlock(uint32_t worker, uint32_t block, int64_t after_ns,
                                int64_t until_ns) const {
  return LastIn(Of(pulls_of_block_, {worker, block}), after_ns, until_ns);
}

PathSpan PathSpans::PullFromLane(uint32_t worker, uint32_t lane, int64_t after_ns,
                                 int64_t until_ns) const {
  return LastIn(Of(pulls_from_lane_, {worker, lane}), after_ns, until_ns);
}

PathSpan PathSpans::AnsweredPush(uint32_t worker, int64_t after_ns, int64_t until_ns) const {
  return LastIn(Of(pushes_, worker), after_ns, until_ns);
}

PathSpan PathSpans::ServeOf(const PathSpan& pull) const {
  return LastOf(Of(serve_, PullKeyOf(pull.node, *pull.event)), pull.node, kEver, pull.event->end_ns,
                [&](const PathSpan& serve) {
                  return serve.event->begin_ns >=
                         pull.event->begin_ns - ToleranceNs(pull.node, serve.node);
                });
}

PathSpan PathSpans::UpdateOf(const TraceEvent& event, uint32_t node, int64_t until_ns) const {
  return LastOf(Of(updates_, {event.block, event.clock}), node, kEver, until_ns,
                [&](const PathSpan& update) { return Overlap(*update.event, event); });
}

PathSpan PathSpans::SumFor(const TraceEvent& event, uint32_t node, int64_t until_ns) const {
  return LastOf(Of(sums_, {event.block, event.clock}), node, kEver, until_ns,
                [&](const PathSpan& sum) { return Overlap(*sum.event, event); });
}

PathSpan PathSpans::SumOfClock(uint64_t clock, uint32_t node, int64_t after_ns,
                               int64_t until_ns) const {
  return LastOf(Of(sums_of_clock_, clock), node, after_ns, until_ns, Any);
}

PathSpan PathSpans::SumOf(const PathSpan& push) const {
  return LastOf(Of(sum_, KeyOf(push.node, *push.event)), push.node, kEver, push.event->end_ns,
                [&](const PathSpan& sum) {
                  return sum.event->begin_ns >=
                         push.event->begin_ns - ToleranceNs(push.node, sum.node);
                });
}

PathSpan PathSpans::PushOf(const PathSpan& sum) const {
  const auto key = KeyOf(sum.event->peer, *sum.event);
  const Spans& pushes = Of(push_, key);
  for (auto push = pushes.rbegin(); push != pushes.rend(); ++push) {
    if (push->event->begin_ns <= sum.event->begin_ns + ToleranceNs(sum.node, push->node)) {
      return *push;
    }
  }
  return {};
}

PathSpan PathSpans::QueueOf(const PathSpan& push) const {
  return LastOf(Of(queue_, KeyOf(push.node, *push.event)), push.node, kEver, push.event->begin_ns,
                Any);
}

PathSpan PathSpans::BackwardOf(const PathSpan& sum) const {
  TraceEvent wanted = *sum.event;
  wanted.first_segment = 0;
  return LastOf(Of(backward_, KeyOf(sum.event->peer, wanted)), sum.node, kEver, sum.event->begin_ns,
                Any);
}

}  // namespace tug
