// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"

namespace tug {

namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

bool LaneLoads::Less(uint32_t a, uint32_t b, uint64_t segment_bytes) const {
  const Wide bytes_a = Wide{2} * bytes_[a] + segment_bytes;
  const Wide bytes_b = Wide{2} * bytes_[b] + segment_bytes;
  if (weights_[a] == 0 || weights_[b] == 0) {
    if (weights_[a] != weights_[b]) return weights_[b] == 0;
    return bytes_a < bytes_b;
  }
  return bytes_a * weights_[b] < bytes_b * weights_[a];
}

uint32_t LaneLoads::Lightest() const {
  uint32_t least = 0;
  for (uint32_t lane = 1; lane < lanes(); ++lane) {
    if (Less(lane, least)) least = lane;
  }
  return least;
}

// With bytes h and weights w, (h_f - s)^2 / w_f + (h_t + s)^2 / w_t is lower than before the move
// if s (w_f + w_t) < 2 (h_f w_t - h_t w_f).
bool LaneLoads::Helps(uint64_t bytes, uint32_t from, uint32_t to) const {
  if (bytes == 0) return false;
  const Wide least = std::min(weights_[from], weights_[to]);
  if (least == 0 && weights_[from] != weights_[to]) return weights_[from] == 0;
  const uint64_t of_from = least == 0 ? 1 : weights_[from], of_to = least == 0 ? 1 : weights_[to];
  return Wide{bytes} * (of_from + of_to) + Wide{2} * bytes_[to] * of_from <
         Wide{2} * bytes_[from] * of_to;
}

double LaneLoads::OffBest(uint64_t bytes, uint32_t from, uint32_t to) const {
  if (weights_[from] == 0) return 0;
  const double of_from = weights_[from], of_to = weights_[to];
  const double best =
      static_cast<double>(bytes_[from]) * of_to - static_cast<double>(bytes_[to]) * of_from;
  return std::abs(static_cast<double>(bytes) * (of_from + of_to) - best);
}

std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes,
                                    std::span<const uint32_t> lane_weights) {
  std::vector<uint32_t> heaviest_first(segment_bytes.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), 0u);
  std::ranges::stable_sort(heaviest_first, std::greater(),
                           [&](uint32_t id) { return segment_bytes[id]; });

  // Among lanes of equal weight the lightest one is the same for any segment.
  using Load = std::pair<uint64_t, uint32_t>;  // bytes, lane
  using Lightest = std::priority_queue<Load, std::vector<Load>, std::greater<Load>>;
  std::map<uint32_t, Lightest> of_weight;
  for (uint32_t lane = 0; lane < lane_weights.size(); ++lane) {
    if (lane_weights[lane] > 0) of_weight[lane_weights[lane]].push({0, lane});
  }
  TUG_CHECK(!of_weight.empty());

  LaneLoads loads({lane_weights.begin(), lane_weights.end()});
  std::vector<uint32_t> lane_of_segment(segment_bytes.size());
  for (const uint32_t segment : heaviest_first) {
    const uint64_t bytes = segment_bytes[segment];
    Lightest* best = nullptr;
    for (auto& [weight, lightest] : of_weight) {
      const uint32_t lane = lightest.top().second;
      const bool first = best == nullptr || loads.Less(lane, best->top().second, bytes);
      const bool tie = !first && !loads.Less(best->top().second, lane, bytes);
      if (first || (tie && lane < best->top().second)) best = &lightest;
    }
    const auto [had, lane] = best->top();
    best->pop();
    best->push({had + bytes, lane});
    loads.Add(lane, bytes);
    lane_of_segment[segment] = lane;
  }
  return lane_of_segment;
}

std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes, uint32_t lanes) {
  TUG_CHECK_GE(lanes, 1u);
  return PlaceSegments(segment_bytes, std::vector<uint32_t>(lanes, 1));
}

std::vector<std::vector<uint32_t>> AssignVirtualWorkers(uint32_t virtual_workers,
                                                        uint32_t workers) {
  TUG_CHECK_GE(workers, 1u);
  TUG_CHECK_GE(virtual_workers, workers);
  std::vector<std::vector<uint32_t>> runs(workers);
  uint32_t next = 0;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    runs[worker].resize(virtual_workers / workers + (worker < virtual_workers % workers ? 1 : 0));
    std::iota(runs[worker].begin(), runs[worker].end(), next);
    next += static_cast<uint32_t>(runs[worker].size());
  }
  return runs;
}

}  // namespace tug
