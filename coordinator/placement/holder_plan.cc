// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/holder_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "coordinator/placement/placement.h"

namespace tug {
namespace {

constexpr uint32_t kNoLane = ~0u;

class Plan {
 public:
  Plan(std::span<const SegmentHeld> segments, std::span<const uint32_t> server_of_lane,
       uint32_t holders, std::vector<uint32_t> weights)
      : segments_(segments),
        server_of_lane_(server_of_lane),
        held_(std::move(weights)),
        planned_(segments.size()) {
    for (const uint32_t server : server_of_lane) {
      if (places_.empty() || server != last_server_) ++servers_;
      last_server_ = server;
      places_.push_back(servers_ - 1);
    }
    copies_ = std::min(holders, servers_) - 1;
    heaviest_first_.resize(segments.size());
    std::iota(heaviest_first_.begin(), heaviest_first_.end(), 0u);
    std::ranges::stable_sort(heaviest_first_, std::greater(),
                             [&](uint32_t id) { return segments[id].bytes; });
  }

  std::vector<PlannedHolders> Make() && {
    PlaceOwners();
    while (MoveAnOwner()) {
    }
    KeepCopies();
    AddCopies();
    while (MoveACopy()) {
    }
    return std::move(planned_);
  }

 private:
  // Lanes by load, heaviest first; ties by index.
  std::vector<uint32_t> HeaviestLanesFirst() const {
    std::vector<uint32_t> lanes(held_.lanes());
    std::iota(lanes.begin(), lanes.end(), 0u);
    std::ranges::stable_sort(lanes, [&](uint32_t a, uint32_t b) { return held_.Less(b, a); });
    return lanes;
  }

  void PlaceOwners() {
    for (uint32_t id = 0; id < segments_.size(); ++id) {
      planned_[id].owner = segments_[id].owner.value_or(kNoLane);
      if (segments_[id].owner.has_value()) held_.Add(*segments_[id].owner, segments_[id].bytes);
    }
    for (const uint32_t id : heaviest_first_) {
      if (planned_[id].owner != kNoLane) continue;
      uint32_t to = kNoLane;
      for (size_t i = 0; i < segments_[id].whole_copies; ++i) {
        const uint32_t copy = segments_[id].copies[i];
        if (to == kNoLane || held_.Less(copy, to)) to = copy;
      }
      planned_[id].owner = to == kNoLane ? held_.Lightest() : to;
      held_.Add(planned_[id].owner, segments_[id].bytes);
    }
  }

  bool HasWholeCopy(uint32_t id, uint32_t lane) const {
    const auto begin = segments_[id].copies.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(segments_[id].whole_copies);
    return std::find(begin, end, lane) != end;
  }

  // Each move lowers the sum of bytes^2 / weight, so the number of moves is finite.
  bool MoveAnOwner() {
    const uint32_t to = held_.Lightest();
    for (const uint32_t from : HeaviestLanesFirst()) {
      // No in-sync copy on `to`; distance from half the gap; segment.
      std::optional<std::tuple<bool, double, uint32_t>> best;
      for (uint32_t id = 0; id < segments_.size(); ++id) {
        const uint64_t bytes = segments_[id].bytes;
        if (planned_[id].owner != from || !held_.Helps(bytes, from, to)) continue;
        const std::tuple<bool, double, uint32_t> rank{!HasWholeCopy(id, to),
                                                      held_.OffBest(bytes, from, to), id};
        if (!best.has_value() || rank < *best) best = rank;
      }
      if (!best.has_value()) continue;
      planned_[std::get<2>(*best)].owner = to;
      held_.Move(segments_[std::get<2>(*best)].bytes, from, to);
      return true;
    }
    return false;
  }

  // Whether a copy on `lane` would be the segment's only holder on that server, ignoring lane
  // `except`.
  bool Fits(uint32_t id, uint32_t lane, uint32_t except) const {
    const auto same = [&](uint32_t other) {
      return other != except && server_of_lane_[other] == server_of_lane_[lane];
    };
    const std::vector<uint32_t>& copies = planned_[id].copies;
    return !same(planned_[id].owner) && std::ranges::none_of(copies, same);
  }

  void KeepCopies() {
    for (uint32_t id = 0; id < segments_.size(); ++id) {
      const SegmentHeld& now = segments_[id];
      std::vector<uint32_t> candidates = now.copies;
      if (now.owner.has_value()) {
        candidates.insert(candidates.begin() + static_cast<std::ptrdiff_t>(now.whole_copies),
                          *now.owner);
      }
      for (const uint32_t lane : candidates) {
        if (planned_[id].copies.size() == copies_) break;
        if (!Fits(id, lane, kNoLane)) continue;
        planned_[id].copies.push_back(lane);
        held_.Add(lane, now.bytes);
      }
    }
  }

  void AddCopies() {
    for (const uint32_t id : heaviest_first_) {
      const uint32_t after = places_[planned_[id].owner];
      while (planned_[id].copies.size() < copies_) {
        std::optional<uint32_t> best;
        const auto distance = [&](uint32_t lane) {
          return (places_[lane] + servers_ - after) % servers_;
        };
        for (uint32_t lane = 0; lane < held_.lanes(); ++lane) {
          if (!Fits(id, lane, kNoLane)) continue;
          const bool less = !best.has_value() || held_.Less(lane, *best);
          const bool more = !less && held_.Less(*best, lane);
          if (less || (!more && distance(lane) < distance(*best))) best = lane;
        }
        TUG_CHECK(best.has_value());  // there are more servers than copies
        planned_[id].copies.push_back(*best);
        held_.Add(*best, segments_[id].bytes);
      }
    }
  }

  bool MoveACopy() {
    const std::vector<uint32_t> lanes = HeaviestLanesFirst();
    for (auto to = lanes.rbegin(); to != lanes.rend(); ++to) {
      for (const uint32_t from : lanes) {
        if (!held_.Less(*to, from)) break;
        if (MoveACopy(from, *to)) return true;
      }
    }
    return false;
  }

  bool MoveACopy(uint32_t from, uint32_t to) {
    std::optional<std::tuple<double, uint32_t>> best;  // distance from half the gap; segment
    for (uint32_t id = 0; id < segments_.size(); ++id) {
      const std::vector<uint32_t>& copies = planned_[id].copies;
      const uint64_t bytes = segments_[id].bytes;
      if (!held_.Helps(bytes, from, to) || std::ranges::find(copies, from) == copies.end() ||
          !Fits(id, to, from)) {
        continue;
      }
      const std::tuple<double, uint32_t> rank{held_.OffBest(bytes, from, to), id};
      if (!best.has_value() || rank < *best) best = rank;
    }
    if (!best.has_value()) return false;
    const uint32_t id = std::get<1>(*best);
    std::ranges::replace(planned_[id].copies, from, to);
    held_.Move(segments_[id].bytes, from, to);
    return true;
  }

  const std::span<const SegmentHeld> segments_;
  const std::span<const uint32_t> server_of_lane_;
  uint32_t copies_ = 0;  // copies per segment
  uint32_t servers_ = 0;
  uint32_t last_server_ = 0;
  std::vector<uint32_t> places_;  // by lane: index of its server
  std::vector<uint32_t> heaviest_first_;
  LaneLoads held_;
  std::vector<PlannedHolders> planned_;
};

}  // namespace

std::vector<PlannedHolders> PlanHolders(std::span<const SegmentHeld> segments,
                                        std::span<const uint32_t> server_of_lane, uint32_t holders,
                                        std::span<const uint32_t> weights) {
  TUG_CHECK(!server_of_lane.empty() && holders >= 1);
  std::vector<uint32_t> all(weights.begin(), weights.end());
  if (all.empty()) all.assign(server_of_lane.size(), 1);
  TUG_CHECK_EQ(all.size(), server_of_lane.size());
  return Plan(segments, server_of_lane, holders, std::move(all)).Make();
}

}  // namespace tug
