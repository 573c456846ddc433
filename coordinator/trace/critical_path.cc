// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/critical_path.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/trace/path_spans.h"

namespace tug {
namespace {

// Work of one thread with smaller gaps counts as continuous: a message that arrived meanwhile
// waited for it.
constexpr int64_t kPauseNs = 50'000;

PathWork WorkOf(TraceKind kind) {
  constexpr std::pair<TraceKind, PathWork> kWorks[] = {
      {TraceKind::kForward, PathWork::kForward},   {TraceKind::kBackward, PathWork::kBackward},
      {TraceKind::kEvaluate, PathWork::kEvaluate}, {TraceKind::kWait, PathWork::kWait},
      {TraceKind::kEncode, PathWork::kEncode},     {TraceKind::kDecode, PathWork::kDecode},
      {TraceKind::kSum, PathWork::kSum},           {TraceKind::kOptimizer, PathWork::kOptimizer},
      {TraceKind::kServe, PathWork::kServe}};
  const auto found = std::ranges::find(kWorks, kind, &std::pair<TraceKind, PathWork>::first);
  return found == std::end(kWorks) ? PathWork::kUnexplained : found->second;
}

// Builds the chain of one step. `at_ns_` only decreases, from part to part.
class Chain {
 public:
  Chain(const PathSpans& spans, StepPath& path) : spans_(spans), path_(path), at_ns_(path.end_ns) {}

  void Follow(uint32_t worker) {
    next_ = {Place::kWorker, {nullptr, worker, 0}};
    while (at_ns_ > path_.begin_ns) {
      const Next now = next_;
      // Clock errors can create a cycle without progress in time. Then continue with the worker's
      // own work, whatever ended its wait.
      const bool fresh =
          now.place == Place::kWorker || seen_.emplace(now.place, now.span.event).second;
      if (fresh) {
        Follow(now);
      } else {
        const uint32_t on_with = WorkerOf(now);
        Compute(on_with, /*follow_wait=*/false);
        GoToWorker(on_with);
      }
    }
    std::ranges::reverse(path_.parts);
  }

 private:
  // Where the chain continues, at `at_ns_`.
  enum class Place {
    kWorker,    // span.node: its current work
    kArrived,   // span: a pull
    kAsked,     // span: the answer to pull_; before the lane began it
    kUpdated,   // span: a completed update
    kSummed,    // span: a completed sum
    kSending,   // span: a push about to be sent
    kAnswered,  // span: an acknowledged push
  };
  struct Next {
    Place place = Place::kWorker;
    PathSpan span;
  };

  void GoTo(Place place, const PathSpan& span) { next_ = {place, span}; }
  void GoToWorker(uint32_t node) { next_ = {Place::kWorker, {nullptr, node, 0}}; }

  // Worker that a place belongs to; for a lane's work, the worker that the chain came from.
  uint32_t WorkerOf(const Next& next) const {
    if (next.place == Place::kSummed) return next.span.event->peer;
    const bool of_lane = next.place == Place::kAsked || next.place == Place::kUpdated;
    return of_lane ? worker_ : next.span.node;
  }

  void Follow(const Next& now) {
    switch (now.place) {
      case Place::kWorker:
        worker_ = now.span.node;
        return Compute(now.span.node, /*follow_wait=*/true);
      case Place::kArrived:
        return Arrived(now.span);
      case Place::kAsked:
        return Asked(now.span);
      case Place::kUpdated:
        return Updated(now.span);
      case Place::kSummed:
        return Summed(now.span);
      case Place::kSending:
        return Sending(now.span);
      case Place::kAnswered:
        return Answered(now.span);
    }
  }

  // ---- parts ----

  // Adds the part from `begin_ns` to at_ns_.
  void Add(PathWork what, std::string who, const TraceEvent* event, int64_t begin_ns) {
    begin_ns = std::max(begin_ns, path_.begin_ns);
    if (begin_ns >= at_ns_) return;
    path_.parts.push_back({what, std::move(who),
                           event == nullptr ? "" : spans_.BlockName(event->block), begin_ns,
                           at_ns_});
    at_ns_ = begin_ns;
  }
  void AddAt(PathWork what, uint32_t node, const TraceEvent* event, int64_t begin_ns) {
    Add(what, spans_.NodeName(node), event, begin_ns);
  }
  void AddLink(PathWork what, uint32_t from, uint32_t to, const TraceEvent* event,
               int64_t begin_ns) {
    Add(what, absl::StrCat("link ", spans_.NodeName(from), " to ", spans_.NodeName(to)), event,
        begin_ns);
  }

  // Adds continuous work of a track until at_ns_, not before `floor_ns`. Returns its earliest span.
  PathSpan AddBusy(uint32_t node, uint32_t track, int64_t floor_ns) {
    const std::vector<const TraceEvent*>& work = spans_.Work(node, track);
    auto event = std::ranges::upper_bound(work, at_ns_, {}, &TraceEvent::end_ns);
    PathSpan first;
    while (event != work.begin() && at_ns_ > floor_ns) {
      const TraceEvent& before = **--event;
      if (before.end_ns <= floor_ns || before.end_ns < at_ns_ - kPauseNs) break;
      AddAt(WorkOf(before.kind), node, &before, std::max(before.begin_ns, floor_ns));
      first = {&before, node, track};
    }
    return first;
  }

  // ---- a worker ----

  void Compute(uint32_t worker, bool follow_wait) {
    const std::vector<const TraceEvent*>& events = spans_.Computing(worker);
    const auto next = std::ranges::lower_bound(events, at_ns_, {}, &TraceEvent::begin_ns);
    if (next == events.begin()) {
      return AddAt(PathWork::kUnexplained, worker, nullptr, path_.begin_ns);
    }
    const TraceEvent& newest = **(next - 1);
    if (newest.end_ns < at_ns_) {
      // An earlier span may enclose it.
      const TraceEvent* around = Around(events, next - 1);
      if (around == nullptr) {
        return AddAt(PathWork::kUnexplained, worker, nullptr, newest.end_ns);
      }
      return AddAt(WorkOf(around->kind), worker, around, newest.end_ns);
    }
    if (newest.kind == TraceKind::kWait && follow_wait) return Waited(worker, newest);
    AddAt(WorkOf(newest.kind), worker, &newest, newest.begin_ns);
  }

  const TraceEvent* Around(const std::vector<const TraceEvent*>& events,
                           std::vector<const TraceEvent*>::const_iterator newest) const {
    constexpr ptrdiff_t kMaxNested = 4;
    const ptrdiff_t steps = std::min<ptrdiff_t>(kMaxNested, newest - events.begin());
    for (ptrdiff_t i = 1; i <= steps; ++i) {
      if ((*(newest - i))->end_ns >= at_ns_) return *(newest - i);
    }
    return nullptr;
  }

  void Waited(uint32_t worker, const TraceEvent& wait) {
    const PathSpan pull = spans_.PullOfBlock(worker, wait.block, wait.begin_ns, at_ns_);
    if (!pull) return AddAt(PathWork::kWait, worker, &wait, wait.begin_ns);
    AddAt(PathWork::kDecode, worker, &wait, pull.event->end_ns);
    GoTo(Place::kArrived, pull);
  }

  // ---- weights, from the lane to the worker ----

  void Arrived(const PathSpan& pull) {
    const PathSpan serve = spans_.ServeOf(pull);
    if (serve) {
      AddLink(PathWork::kPull, serve.node, pull.node, pull.event, serve.event->end_ns);
      AddAt(PathWork::kServe, serve.node, serve.event, serve.event->begin_ns);
      pull_ = pull;
      return GoTo(Place::kAsked, serve);
    }
    const PathSpan update = spans_.UpdateOf(*pull.event, pull.node, at_ns_);
    if (update && update.event->end_ns > pull.event->begin_ns) {
      AddLink(PathWork::kPull, update.node, pull.node, pull.event, update.event->end_ns);
      return GoTo(Place::kUpdated, update);
    }
    AddAt(PathWork::kUnexplained, pull.node, pull.event, pull.event->begin_ns);
    GoToWorker(pull.node);
  }

  void Asked(const PathSpan& serve) {
    const PathSpan pull = pull_;
    const PathSpan update = spans_.UpdateOf(*pull.event, serve.node, at_ns_);
    const int64_t asked_ns = pull.event->begin_ns;
    const int64_t made_ns = update ? update.event->end_ns : asked_ns;
    const int64_t floor_ns = std::max(made_ns, asked_ns);
    AddBusy(serve.node, serve.track, floor_ns);
    if (at_ns_ > floor_ns) {
      const PathSpan before = spans_.PullFromLane(
          pull.node, pull.event->peer, floor_ns,
          std::min(at_ns_ + spans_.ToleranceNs(pull.node, serve.node), pull.event->end_ns - 1));
      if (before && before.event != pull.event) {
        AddLink(PathWork::kAnswer, pull.node, serve.node, before.event, before.event->end_ns);
        return GoTo(Place::kArrived, before);
      }
    }
    if (made_ns >= asked_ns && update) {
      AddAt(PathWork::kHold, serve.node, pull.event, made_ns);
      return GoTo(Place::kUpdated, update);
    }
    if (!update) {
      // The update was not recorded; one of its sums may be.
      const PathSpan sum = spans_.SumFor(*pull.event, serve.node, at_ns_);
      if (sum && sum.event->end_ns > asked_ns) {
        AddAt(PathWork::kUnexplained, serve.node, pull.event, sum.event->end_ns);
        return GoTo(Place::kSummed, sum);
      }
    }
    AddLink(PathWork::kAsk, pull.node, serve.node, pull.event, asked_ns);
    GoToWorker(pull.node);
  }

  // ---- a lane ----

  void Updated(const PathSpan& update) {
    AddAt(PathWork::kOptimizer, update.node, update.event, update.event->begin_ns);
    const PathSpan sum = spans_.SumFor(*update.event, update.node, at_ns_);
    const int64_t floor_ns = sum ? sum.event->end_ns : path_.begin_ns;
    const PathSpan first = AddBusy(update.node, update.track, floor_ns);
    if (at_ns_ <= floor_ns) return GoTo(Place::kSummed, sum);
    if (first && first.event->kind == TraceKind::kSum) return GoTo(Place::kSummed, first);
    const PathSpan other = spans_.SumOfClock(update.event->clock, update.node, floor_ns, at_ns_);
    if (other) {
      if (other.node == update.node) {
        AddAt(PathWork::kLanes, update.node, update.event, other.event->end_ns);
      } else {
        AddLink(PathWork::kLanes, other.node, update.node, update.event, other.event->end_ns);
      }
      return GoTo(Place::kSummed, other);
    }
    AddAt(PathWork::kUnexplained, update.node, update.event, floor_ns);
    if (sum) GoTo(Place::kSummed, sum);
  }

  void Summed(const PathSpan& sum) {
    AddAt(PathWork::kSum, sum.node, sum.event, sum.event->begin_ns);
    const PathSpan push = spans_.PushOf(sum);
    const uint32_t worker = sum.event->peer;
    if (push) {
      AddBusy(sum.node, sum.track, push.event->begin_ns);
      AddLink(PathWork::kPush, worker, sum.node, sum.event, push.event->begin_ns);
      return GoTo(Place::kSending, push);
    }
    // The push was not recorded; continue at the end of the backward pass.
    if (const PathSpan backward = spans_.BackwardOf(sum)) {
      AddLink(PathWork::kUnexplained, worker, sum.node, sum.event, backward.event->end_ns);
    }
    GoToWorker(worker);
  }

  // ---- gradients, from the worker to the lane ----

  void Sending(const PathSpan& push) {
    const PathSpan queue = spans_.QueueOf(push);
    if (!queue) return GoToWorker(push.node);
    const int64_t queued_ns = queue.event->begin_ns;
    AddBusy(push.node, push.track, queued_ns);
    if (at_ns_ > queued_ns) {
      const PathSpan before = spans_.AnsweredPush(push.node, queued_ns, at_ns_);
      if (before && before.event != push.event) {
        AddAt(PathWork::kQueue, push.node, push.event, before.event->end_ns);
        return GoTo(Place::kAnswered, before);
      }
    }
    AddAt(PathWork::kQueue, push.node, push.event, queued_ns);
    GoToWorker(push.node);
  }

  void Answered(const PathSpan& push) {
    const PathSpan sum = spans_.SumOf(push);
    if (!sum) {
      AddAt(PathWork::kUnexplained, push.node, push.event, push.event->begin_ns);
      return GoTo(Place::kSending, push);
    }
    // A push that completed its segments was acknowledged after their update.
    const PathSpan update = spans_.UpdateOf(*push.event, push.node, at_ns_);
    if (update && update.node == sum.node && update.event->begin_ns >= sum.event->end_ns) {
      AddLink(PathWork::kAnswer, sum.node, push.node, push.event, update.event->end_ns);
      AddBusy(update.node, update.track, sum.event->end_ns);
    }
    AddLink(PathWork::kAnswer, sum.node, push.node, push.event, sum.event->end_ns);
    GoTo(Place::kSummed, sum);
  }

  const PathSpans& spans_;
  StepPath& path_;
  int64_t at_ns_;
  Next next_;
  PathSpan pull_;        // for kAsked
  uint32_t worker_ = 0;  // last worker in the chain
  std::set<std::pair<Place, const TraceEvent*>> seen_;
};

// The worker that ended the step last.
PathSpan LastOf(const std::vector<PathSpan>& steps) {
  return *std::ranges::max_element(steps, {},
                                   [](const PathSpan& span) { return span.event->end_ns; });
}

// Excludes time at the gate at the beginning.
int64_t BeginOf(const PathSpans& spans, uint64_t clock, const std::vector<PathSpan>& steps) {
  int64_t begin_ns = LastOf(steps).event->begin_ns;
  for (const PathSpan& step : steps) begin_ns = std::min(begin_ns, step.event->begin_ns);
  const auto before = spans.steps().find(clock - 1);
  if (clock == 0 || before == spans.steps().end()) return LastOf(steps).event->begin_ns;
  return std::max(begin_ns, LastOf(before->second).event->end_ns);
}

}  // namespace

std::vector<StepPath> CriticalPathsOf(const JobTrace& trace) {
  const PathSpans spans(trace);
  std::vector<StepPath> paths;
  for (const auto& [clock, steps] : spans.steps()) {
    if (!trace.range.Has(clock)) continue;
    const PathSpan last = LastOf(steps);
    StepPath path{
        .clock = clock, .begin_ns = BeginOf(spans, clock, steps), .end_ns = last.event->end_ns};
    if (path.begin_ns >= path.end_ns) continue;  // no worker waited for it
    Chain(spans, path).Follow(last.node);
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace tug
