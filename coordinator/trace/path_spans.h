// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_PATH_SPANS_H_
#define TUG_COORDINATOR_TRACE_PATH_SPANS_H_

// Index of a trace's spans for the look-ups of a chain (critical_path.h).

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "coordinator/progress/trace_collector.h"

namespace tug {

// A span and the track that recorded it.
struct PathSpan {
  const TraceEvent* event = nullptr;
  uint32_t node = 0;   // id
  uint32_t track = 0;  // of the node

  explicit operator bool() const { return event != nullptr; }
};

// Not thread-safe. Look-ups without a result return a PathSpan without event.
class PathSpans {
 public:
  // REQUIRES: `trace` outlives this object.
  explicit PathSpans(const JobTrace& trace);

  // "worker-1"; "lost node 7" if the trace lacks it.
  std::string NodeName(uint32_t node) const;
  std::string BlockName(uint32_t block) const;
  // By how much a time of `a` can seem later than a time of `b` that followed it; 0 for one node.
  int64_t ToleranceNs(uint32_t a, uint32_t b) const;

  // Step spans of workers, by clock.
  const std::map<uint64_t, std::vector<PathSpan>>& steps() const { return steps_; }

  // Work of a worker's compute thread, ordered by begin: passes (those of its device if it recorded
  // them) and waits.
  const std::vector<const TraceEvent*>& Computing(uint32_t worker) const;
  // Work of a track that does one thing at a time, ordered by end: of lanes, and encoding and
  // decoding of exchanges.
  const std::vector<const TraceEvent*>& Work(uint32_t node, uint32_t track) const;

  // The pull of a worker that arrived last in (after_ns, until_ns], of a block or from a lane.
  PathSpan PullOfBlock(uint32_t worker, uint32_t block, int64_t after_ns, int64_t until_ns) const;
  PathSpan PullFromLane(uint32_t worker, uint32_t lane, int64_t after_ns, int64_t until_ns) const;
  // The push of a worker that was acknowledged last in (after_ns, until_ns].
  PathSpan AnsweredPush(uint32_t worker, int64_t after_ns, int64_t until_ns) const;

  // The last answer to a pull that ended before the pull arrived.
  PathSpan ServeOf(const PathSpan& pull) const;
  // The last update of a segment of the event (block, segments, clock) that ended by `until_ns` in
  // the clock of `node`.
  PathSpan UpdateOf(const TraceEvent& event, uint32_t node, int64_t until_ns) const;
  // The last sum with a segment of the event that ended by `until_ns`.
  PathSpan SumFor(const TraceEvent& event, uint32_t node, int64_t until_ns) const;
  // The last sum of a clock, of any segment and lane, that ended in (after_ns, until_ns].
  PathSpan SumOfClock(uint64_t clock, uint32_t node, int64_t after_ns, int64_t until_ns) const;
  // The sum of a push, the push of a sum, and the queue span of a push if it ended before the push
  // began.
  PathSpan SumOf(const PathSpan& push) const;
  PathSpan PushOf(const PathSpan& sum) const;
  PathSpan QueueOf(const PathSpan& push) const;
  // The backward pass that computed the gradient of a sum.
  PathSpan BackwardOf(const PathSpan& sum) const;

 private:
  using Spans = std::vector<PathSpan>;
  // Worker, virtual worker, block, first segment, clock.
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
  using Pair = std::pair<uint32_t, uint32_t>;
  using BlockClock = std::pair<uint32_t, uint64_t>;

  void Take(const TracedNode& node, uint32_t track, bool device_computes);
  void ProcessEvent(const PathSpan& span, bool computes);
  static Key KeyOf(uint32_t worker, const TraceEvent& event);
  static Key PullKeyOf(uint32_t worker, const TraceEvent& event);
  static PathSpan LastIn(const Spans& by_end, int64_t after_ns, int64_t until_ns);
  template <typename Map>
  static const typename Map::mapped_type& Of(const Map& map, const typename Map::key_type& key);
  template <typename Holds>
  PathSpan LastOf(const Spans& spans, uint32_t node, int64_t after_ns, int64_t until_ns,
                  Holds holds) const;

  const JobTrace& trace_;
  std::map<uint32_t, const TracedNode*> nodes_;
  std::map<uint64_t, Spans> steps_;
  std::map<uint32_t, std::vector<const TraceEvent*>> computing_;
  std::map<Pair, std::vector<const TraceEvent*>> work_;
  // All spans are ordered by end.
  std::map<Pair, Spans> pulls_of_block_;
  std::map<Pair, Spans> pulls_from_lane_;
  std::map<uint32_t, Spans> pushes_;
  std::map<Key, Spans> push_;
  std::map<Key, Spans> queue_;
  std::map<Key, Spans> sum_;
  std::map<Key, Spans> serve_;
  std::map<Key, Spans> backward_;
  std::map<BlockClock, Spans> updates_;
  std::map<BlockClock, Spans> sums_;
  std::map<uint64_t, Spans> sums_of_clock_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_PATH_SPANS_H_
