// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/trace_figures.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

struct Interval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

double SecondsOf(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Union of intervals: disjoint, in order.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin_ns);
  std::vector<Interval> result;
  for (const Interval& next : intervals) {
    if (result.empty() || next.begin_ns > result.back().end_ns) {
      result.push_back(next);
    } else {
      result.back().end_ns = std::max(result.back().end_ns, next.end_ns);
    }
  }
  return result;
}

// Length of [begin, end) that the intervals (disjoint, in order) cover.
int64_t Covered(const std::vector<Interval>& intervals, int64_t begin_ns, int64_t end_ns) {
  auto next = std::ranges::upper_bound(intervals, begin_ns, {}, &Interval::end_ns);
  int64_t covered_ns = 0;
  for (; next != intervals.end() && next->begin_ns < end_ns; ++next) {
    covered_ns += std::min(next->end_ns, end_ns) - std::max(next->begin_ns, begin_ns);
  }
  return covered_ns;
}

std::vector<StepFigures> FiguresOfWorker(const TracedNode& node, TraceRange range) {
  const bool has_device = std::ranges::any_of(node.tracks, IsOfDevice);
  std::map<uint64_t, StepFigures> steps;
  std::map<uint64_t, Interval> windows;  // of steps
  std::vector<Interval> open;
  for (const TracedTrack& track : node.tracks) {
    const bool computes = !has_device || IsOfDevice(track);
    for (const TraceEvent& event : track.events) {
      StepFigures& step = steps[event.clock];
      const double seconds = SecondsOf(event.end_ns - event.begin_ns);
      switch (event.kind) {
        case TraceKind::kStep:
          windows[event.clock] = {event.begin_ns, event.end_ns};
          step.seconds = seconds;
          break;
        case TraceKind::kForward:
        case TraceKind::kBackward:
          if (computes) step.compute_seconds += seconds;
          break;
        case TraceKind::kWait:
          step.exposed_seconds += seconds;
          break;
        case TraceKind::kQueue: {
          double& longest = step.queue_seconds[event.block];
          longest = std::max(longest, seconds);
          open.push_back({event.begin_ns, event.end_ns});
          break;
        }
        case TraceKind::kPush:
          step.pushed_bytes += event.bytes;
          open.push_back({event.begin_ns, event.end_ns});
          break;
        case TraceKind::kPull:
          step.pulled_bytes += event.bytes;
          open.push_back({event.begin_ns, event.end_ns});
          break;
        default:
          break;
      }
    }
  }
  const std::vector<Interval> times = Union(std::move(open));
  std::vector<StepFigures> figures;
  for (const auto& [clock, window] : windows) {
    if (!range.Has(clock)) continue;
    StepFigures& step = steps[clock];
    step.node_id = node.node_id;
    step.clock = clock;
    step.communication_seconds = SecondsOf(Covered(times, window.begin_ns, window.end_ns));
    figures.push_back(std::move(step));
  }
  return figures;
}

}  // namespace

bool IsOfDevice(const TracedTrack& track) {
  const auto has = [&](TraceKind kind) {
    return std::ranges::any_of(track.events,
                               [&](const TraceEvent& event) { return event.kind == kind; });
  };
  return has(TraceKind::kForward) && !has(TraceKind::kStep);
}

double StepFigures::overlap() const {
  if (communication_seconds <= 0) return 1;
  return std::clamp(1 - exposed_seconds / communication_seconds, 0.0, 1.0);
}

std::vector<StepFigures> FiguresOf(const JobTrace& trace) {
  std::vector<StepFigures> all;
  for (const TracedNode& node : trace.nodes) {
    if (node.kind != WORKER) continue;
    for (StepFigures& step : FiguresOfWorker(node, trace.range)) all.push_back(std::move(step));
  }
  return all;
}

StepFigures MeanOf(const std::vector<StepFigures>& figures) {
  TUG_CHECK(!figures.empty());
  StepFigures mean;
  for (const StepFigures& step : figures) {
    mean.seconds += step.seconds;
    mean.compute_seconds += step.compute_seconds;
    mean.exposed_seconds += step.exposed_seconds;
    mean.communication_seconds += step.communication_seconds;
    mean.pushed_bytes += step.pushed_bytes;
    mean.pulled_bytes += step.pulled_bytes;
  }
  const auto count = static_cast<double>(figures.size());
  mean.seconds /= count;
  mean.compute_seconds /= count;
  mean.exposed_seconds /= count;
  mean.communication_seconds /= count;
  mean.pushed_bytes /= figures.size();
  mean.pulled_bytes /= figures.size();
  return mean;
}

}  // namespace tug
