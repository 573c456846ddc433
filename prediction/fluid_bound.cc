// SPDX-License-Identifier: Apache-2.0
// Lower bound of scheduling.h. Time 0 is the beginning of the first backward pass of a step.
//
//   1. A piece of work: bytes of a block that may cross a link from a time on. Gradients: once
//      their virtual worker has ended the block's backward pass; weights: once the last one has.
//   2. A link carries the piece of the most urgent available block, and switches as soon as a more
//      urgent one is available. This minimizes the latest of (end of block + forward passes from
//      that block on), which is the end of the step: the same rule as earliest due date (Horn
//      1974), since those tails grow with urgency.
//   3. The next forward pass computes the blocks in order, each no earlier than its last piece.
//
// Why no steady state is faster. No piece of a step can cross its link before that step's backward
// passes (1.), and all of them have crossed before its next forward passes end, so steps never
// share a link at the same time. Workers need not keep step. Let worker w begin its step at e(w),
// with the same period T for all:
//   - a server receives gradients no earlier than if all began at the earliest e(w), and the worker
//     of that one begins its next step at e(w) + T;
//   - a server sends a block's weights no earlier than the last worker has ended its backward pass,
//     so not before the latest e(w) + the time of the kind with fewest virtual workers; some worker
//     gets the last of them, and begins its next step at the latest e(w) + T at most.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "prediction/replay_traffic.h"
#include "prediction/scheduling.h"

namespace tug {
namespace {

using Spans = std::vector<SimulatedSpan>;
using Kind = SimulatedSpan::Kind;

struct Piece {
  double from_seconds = 0;
  uint32_t block = 0;
  double link_seconds = 0;  // time on the link
};

// When a virtual worker, by its index on its worker, ends a block's backward pass.
class BackwardEnds {
 public:
  explicit BackwardEnds(const ReplayTraffic& traffic) : ends_(traffic.blocks()) {
    double now = 0;
    for (uint32_t block = traffic.blocks(); block-- > 0;) {
      now += traffic.backward_seconds[block];
      ends_[block] = now;
    }
    pass_ =
        now + std::accumulate(traffic.forward_seconds.begin(), traffic.forward_seconds.end(), 0.0);
  }
  double Of(uint32_t virtual_worker, uint32_t block) const {
    return virtual_worker * pass_ + ends_[block];
  }

 private:
  std::vector<double> ends_;  // of the first virtual worker
  double pass_ = 0;           // backward and forward
};

// 2.: when each block has crossed, and the intervals of its crossing.
struct Crossing {
  std::vector<double> block_ends;
  Spans spans;
};

Crossing Cross(std::vector<Piece> pieces, uint32_t blocks, Kind kind) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.from_seconds < b.from_seconds; });
  Crossing crossing{std::vector<double>(blocks, 0), {}};
  std::vector<double> left(blocks, 0);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> there;
  double now = 0;
  size_t next = 0;
  while (next < pieces.size() || !there.empty()) {
    if (there.empty()) now = std::max(now, pieces[next].from_seconds);
    for (; next < pieces.size() && pieces[next].from_seconds <= now; ++next) {
      const Piece& piece = pieces[next];
      if (left[piece.block] == 0) there.push(piece.block);
      left[piece.block] += piece.link_seconds;
    }
    if (there.empty()) continue;
    const uint32_t block = there.top();
    const double until =
        next < pieces.size() ? pieces[next].from_seconds : std::numeric_limits<double>::infinity();
    const bool ends = now + left[block] <= until;
    const double end = ends ? now + left[block] : until;
    Spans& spans = crossing.spans;
    const bool goes_on =
        !spans.empty() && spans.back().block == block && spans.back().end_seconds == now;
    if (goes_on) {
      spans.back().end_seconds = end;
    } else if (end > now) {
      spans.push_back({kind, block, now, end});
    }
    left[block] = ends ? 0 : left[block] - (end - now);
    now = end;
    if (ends || left[block] <= 0) {
      left[block] = 0;
      there.pop();
      crossing.block_ends[block] = now;
    }
  }
  return crossing;
}

// 3.; appends the computations of a worker of the first kind.
double EndOfStep(const ReplayTraffic& traffic, std::span<const double> weights_there,
                 Spans& spans) {
  double now = 0;
  const auto compute = [&](Kind kind, uint32_t block, double seconds) {
    spans.push_back({kind, block, now, now + seconds});
    now += seconds;
  };
  for (uint32_t v = 0; v < traffic.kinds.front().virtual_workers; ++v) {
    for (uint32_t block = 0; v > 0 && block < traffic.blocks(); ++block) {
      compute(Kind::kForward, block, traffic.forward_seconds[block]);
    }
    for (uint32_t block = traffic.blocks(); block-- > 0;) {
      compute(Kind::kBackward, block, traffic.backward_seconds[block]);
    }
  }
  for (uint32_t block = 0; block < traffic.blocks(); ++block) {
    now = std::max(now, weights_there[block]);
    compute(Kind::kForward, block, traffic.forward_seconds[block]);
  }
  return now;
}

// Tries all links that bytes cross, and keeps the slowest.
class Bound {
 public:
  Bound(const ReplayTraffic& traffic, double link_bytes_per_second)
      : traffic_(traffic), ends_(traffic), link_bytes_per_second_(link_bytes_per_second) {}

  SchedulingPrediction Find() {
    best_.compute_seconds = traffic_.compute_seconds();
    const BlockBytes whole = Sum([](uint32_t) { return true; });
    const WorkerKind most = traffic_.kinds.front();
    Try(Pushes({1, most.virtual_workers}, whole.push), Kind::kPush);
    Try(Pulls(1, most.virtual_workers, whole.pull), Kind::kPull);
    uint32_t workers = 0;
    for (const WorkerKind& kind : traffic_.kinds) workers += kind.workers;
    for (uint32_t server = 0; server < traffic_.servers; ++server) {
      const BlockBytes bytes = Sum([&](uint32_t id) {
        return traffic_.lane_of_segment[id] / traffic_.lanes_per_server == server;
      });
      std::vector<Piece> pushes;
      for (const WorkerKind& kind : traffic_.kinds) {
        const std::vector<Piece> more = Pushes(kind, bytes.push);
        pushes.insert(pushes.end(), more.begin(), more.end());
      }
      Try(std::move(pushes), Kind::kPush);
      Try(Pulls(workers, traffic_.kinds.back().virtual_workers, bytes.pull), Kind::kPull);
    }
    best_.exposed_seconds = best_.step_seconds - best_.compute_seconds;
    return std::move(best_);
  }

 private:
  // By block: bytes of gradients, and of weights.
  struct BlockBytes {
    std::vector<double> push, pull;
  };
  // Bytes of the segments for which `holds` is true.
  BlockBytes Sum(const std::function<bool(uint32_t id)>& holds) const {
    const std::vector<double> none(traffic_.blocks(), 0);
    BlockBytes sum{none, none};
    for (uint32_t id = 0; id < traffic_.table.size(); ++id) {
      if (!holds(id)) continue;
      const Segment& segment = traffic_.table.segment(id);
      sum.push[segment.block] += static_cast<double>(traffic_.push_bytes[id]);
      sum.pull[segment.block] += static_cast<double>(traffic_.pull_bytes[id]);
    }
    return sum;
  }

  double LinkSeconds(double bytes) const { return bytes / link_bytes_per_second_; }

  std::vector<Piece> Pushes(WorkerKind kind, std::span<const double> bytes) const {
    std::vector<Piece> pieces;
    for (uint32_t v = 0; v < kind.virtual_workers; ++v) {
      for (uint32_t b = 0; b < bytes.size(); ++b) {
        if (bytes[b] == 0) continue;
        pieces.push_back({ends_.Of(v, b), b, kind.workers * LinkSeconds(bytes[b])});
      }
    }
    return pieces;
  }
  // Pulls by `workers` workers, each once it has run `virtual_workers` virtual workers.
  std::vector<Piece> Pulls(uint32_t workers, uint32_t virtual_workers,
                           std::span<const double> bytes) const {
    std::vector<Piece> pieces;
    for (uint32_t b = 0; b < bytes.size(); ++b) {
      if (bytes[b] == 0) continue;
      pieces.push_back({ends_.Of(virtual_workers - 1, b), b, workers * LinkSeconds(bytes[b])});
    }
    return pieces;
  }

  void Try(std::vector<Piece> pieces, Kind kind) {
    Crossing crossing = Cross(std::move(pieces), traffic_.blocks(), kind);
    Spans spans = std::move(crossing.spans);
    const double end = EndOfStep(traffic_, crossing.block_ends, spans);
    if (end <= best_.step_seconds) return;
    best_.step_seconds = end;
    std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.begin_seconds < b.begin_seconds;
    });
    best_.spans = std::move(spans);
  }

  const ReplayTraffic& traffic_;
  const BackwardEnds ends_;
  const double link_bytes_per_second_;
  SchedulingPrediction best_;
};

}  // namespace

absl::StatusOr<SchedulingPrediction> FluidBound(const JobConfig& job,
                                                double link_bytes_per_second) {
  RETURN_IF_ERROR(CheckLinkRate(link_bytes_per_second));
  ASSIGN_OR_RETURN(const ReplayTraffic traffic, ReplayTrafficOf(job));
  return Bound(traffic, link_bytes_per_second).Find();
}

}  // namespace tug
