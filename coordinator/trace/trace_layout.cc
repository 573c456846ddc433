// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/trace_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tug {
namespace {

// Rows: tracks first, then a hundred for each kind whose spans overlap.
constexpr uint32_t kFirstRow = 10'000;
constexpr std::array<TraceKind, 3> kSideBySide = {TraceKind::kQueue, TraceKind::kPush,
                                                  TraceKind::kPull};

bool EarlierThenLonger(const TraceEvent& a, const TraceEvent& b) {
  return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
}

// Node, block, first segment, clock, virtual worker.
using EventKey = std::tuple<uint32_t, uint32_t, uint32_t, uint64_t, uint32_t>;
// Node, block, clock.
using BlockKey = std::tuple<uint32_t, uint32_t, uint64_t>;

class Layout {
 public:
  explicit Layout(const JobTrace& trace) : trace_(trace) {}

  TraceLayout Make() {
    FindAnswers();
    for (const TracedNode& node : trace_.nodes) {
      DrawWork(node);
      DrawQueues(node);
      DrawPushes(node);
      DrawPulls(node);
    }
    FindWork();
    DrawArrows();
    return std::move(result_);
  }

 private:
  template <typename Take>
  static void ForEach(const TracedNode& node, TraceKind kind, Take take) {
    for (const TracedTrack& track : node.tracks) {
      for (const TraceEvent& event : track.events) {
        if (event.kind == kind) take(event);
      }
    }
  }

  // Times at which lanes began to answer pulls; the last one of repeats.
  void FindAnswers() {
    for (const TracedNode& node : trace_.nodes) {
      ForEach(node, TraceKind::kServe, [&](const TraceEvent& event) {
        answered_[{event.peer, event.block, event.first_segment, event.clock, 0}] = event.begin_ns;
      });
    }
  }

  void DrawWork(const TracedNode& node) {
    for (uint32_t i = 0; i < node.tracks.size(); ++i) {
      const uint32_t row = i + 1;
      result_.tracks.push_back({node.node_id, row, node.tracks[i].name});
      std::vector<TraceEvent> work;
      for (const TraceEvent& event : node.tracks[i].events) {
        const bool side_by_side = std::ranges::find(kSideBySide, event.kind) != kSideBySide.end();
        if (!side_by_side) work.push_back(event);
      }
      std::ranges::stable_sort(work, EarlierThenLonger);
      for (const TraceEvent& event : work) {
        result_.spans.push_back({.node_id = node.node_id, .row = row, .event = event});
      }
    }
  }

  void DrawQueues(const TracedNode& node) {
    std::map<EventKey, DrawnSpan> blocks;
    ForEach(node, TraceKind::kQueue, [&](const TraceEvent& event) {
      const EventKey key{node.node_id, event.block, 0, event.clock, event.virtual_worker};
      const auto [found, fresh] =
          blocks.try_emplace(key, DrawnSpan{.node_id = node.node_id, .event = event});
      if (fresh) return;
      TraceEvent& whole = found->second.event;
      const uint32_t end = std::max(whole.first_segment + whole.segment_count,
                                    event.first_segment + event.segment_count);
      whole.first_segment = std::min(whole.first_segment, event.first_segment);
      whole.segment_count = end - whole.first_segment;
      whole.bytes += event.bytes;
      whole.begin_ns = std::min(whole.begin_ns, event.begin_ns);
      whole.end_ns = std::max(whole.end_ns, event.end_ns);
      ++found->second.partitions;
    });
    std::vector<DrawnSpan> spans;
    for (auto& [key, span] : blocks) spans.push_back(std::move(span));
    DrawRows(node, 0, std::move(spans));
  }

  void DrawPushes(const TracedNode& node) {
    std::vector<DrawnSpan> spans;
    ForEach(node, TraceKind::kPush, [&](const TraceEvent& event) {
      spans.push_back({.node_id = node.node_id, .event = event});
    });
    DrawRows(node, 1, std::move(spans));
  }

  void DrawPulls(const TracedNode& node) {
    std::vector<DrawnSpan> spans;
    ForEach(node, TraceKind::kPull, [&](const TraceEvent& event) {
      DrawnSpan span{.node_id = node.node_id, .event = event};
      const auto answered =
          answered_.find({node.node_id, event.block, event.first_segment, event.clock, 0});
      if (answered != answered_.end()) {
        // The clocks of two nodes agree only within their error bounds.
        span.event.begin_ns = std::clamp(answered->second, event.begin_ns, event.end_ns);
        span.waited_ns = span.event.begin_ns - event.begin_ns;
      }
      spans.push_back(span);
    });
    DrawRows(node, 2, std::move(spans));
  }

  // Places each span in the first free row.
  void DrawRows(const TracedNode& node, uint32_t group, std::vector<DrawnSpan> spans) {
    std::ranges::stable_sort(spans, [](const DrawnSpan& a, const DrawnSpan& b) {
      return EarlierThenLonger(a.event, b.event);
    });
    std::vector<int64_t> ends;
    std::vector<std::vector<DrawnSpan>> rows;
    for (DrawnSpan& span : spans) {
      const auto free =
          std::ranges::find_if(ends, [&](int64_t end_ns) { return end_ns <= span.event.begin_ns; });
      const auto row = static_cast<uint32_t>(free - ends.begin());
      if (row == kMaxTraceRows) {
        ++result_.left_out;
        continue;
      }
      if (free == ends.end()) {
        ends.push_back(0);
        rows.emplace_back();
      }
      ends[row] = span.event.end_ns;
      span.row = kFirstRow + 100 * group + row;
      rows[row].push_back(span);
    }
    for (const std::vector<DrawnSpan>& row : rows) {
      const char* name = kTraceKindNames[static_cast<size_t>(kSideBySide[group])];
      result_.tracks.push_back({node.node_id, row.front().row, name});
      result_.spans.insert(result_.spans.end(), row.begin(), row.end());
    }
  }

  // Indexes the drawn spans that arrows touch.
  void FindWork() {
    for (const DrawnSpan& span : result_.spans) {
      const TraceEvent& event = span.event;
      switch (event.kind) {
        case TraceKind::kSum:
          sums_[{event.peer, event.block, event.first_segment, event.clock, event.virtual_worker}] =
              &span;
          break;
        case TraceKind::kOptimizer:
          updates_[{0, event.block, event.first_segment, event.clock, 0}] = &span;
          break;
        case TraceKind::kPull:
          pulls_[{span.node_id, event.block, event.clock}].push_back(&span);
          break;
        default:
          break;
      }
    }
  }

  // The pull with the push's first segment; null: none.
  const DrawnSpan* PullOf(const DrawnSpan& push) const {
    const TraceEvent& event = push.event;
    const auto found = pulls_.find({push.node_id, event.block, event.clock});
    if (found == pulls_.end()) return nullptr;
    for (const DrawnSpan* pull : found->second) {
      if (pull->event.first_segment <= event.first_segment &&
          event.first_segment < pull->event.first_segment + pull->event.segment_count) {
        return pull;
      }
    }
    return nullptr;
  }

  void DrawArrows() {
    for (const DrawnSpan& push : result_.spans) {
      if (push.event.kind != TraceKind::kPush) continue;
      const DrawnSpan* pull = PullOf(push);
      // Both times are of one node: only a push that was deferred and resent can begin after the
      // pull ends.
      if (pull == nullptr || pull->event.end_ns < push.event.begin_ns) continue;
      const TraceEvent& event = push.event;
      const int64_t end_ns = std::max(pull->event.begin_ns, event.begin_ns);
      ++arrow_;
      Point(ArrowPoint::Place::kStart, push, event.begin_ns);
      int64_t at_ns = event.begin_ns;
      // If clock errors reverse the order, the arrow skips the span.
      const auto step = [&](const std::map<EventKey, const DrawnSpan*>& spans,
                            const EventKey& key) {
        const auto found = spans.find(key);
        if (found == spans.end()) return;
        const int64_t begin_ns = found->second->event.begin_ns;
        if (begin_ns < at_ns || begin_ns > end_ns) return;
        at_ns = begin_ns;
        Point(ArrowPoint::Place::kStep, *found->second, at_ns);
      };
      step(sums_,
           {push.node_id, event.block, event.first_segment, event.clock, event.virtual_worker});
      step(updates_, {0, event.block, event.first_segment, event.clock, 0});
      Point(ArrowPoint::Place::kEnd, *pull, end_ns);
    }
  }

  void Point(ArrowPoint::Place place, const DrawnSpan& span, int64_t at_ns) {
    result_.arrows.push_back({place, arrow_, span.node_id, span.row, at_ns});
  }

  const JobTrace& trace_;
  TraceLayout result_;
  std::map<EventKey, int64_t> answered_;
  std::map<EventKey, const DrawnSpan*> sums_;     // key: node of the worker
  std::map<EventKey, const DrawnSpan*> updates_;  // key: no node
  std::map<BlockKey, std::vector<const DrawnSpan*>> pulls_;
  uint64_t arrow_ = 0;
};

}  // namespace

TraceLayout LayOut(const JobTrace& trace) { return Layout(trace).Make(); }

}  // namespace tug
