// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/segment_holders.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "coordinator/placement/placement.h"

namespace tug {
namespace {

// Copy::since in a placement without a number yet.
constexpr uint32_t kUnnumbered = std::numeric_limits<uint32_t>::max();

bool Contains(const auto& range, const auto& value) {
  return std::ranges::find(range, value) != range.end();
}

std::vector<LaneId> LanesOf(std::span<const uint32_t> servers, uint32_t lanes_per_server) {
  std::vector<LaneId> lanes;
  for (const uint32_t server : servers) {
    for (uint32_t i = 0; i < lanes_per_server; ++i) lanes.push_back({server, i});
  }
  return lanes;
}

uint32_t IndexOf(const std::vector<LaneId>& lanes, const LaneId& lane) {
  const auto found = std::lower_bound(lanes.begin(), lanes.end(), lane);
  TUG_CHECK(found != lanes.end() && *found == lane);
  return static_cast<uint32_t>(found - lanes.begin());
}

}  // namespace

SegmentHolders::SegmentHolders(Options options)
    : options_(std::move(options)), segments_(options_.segment_bytes.size()) {
  TUG_CHECK(options_.replicas > 0 && options_.lanes_per_server > 0);
}

void SegmentHolders::RecordServers(std::span<const uint32_t> servers,
                                   std::span<const uint32_t> weights) {
  TUG_CHECK(!servers.empty() && (weights.empty() || weights.size() == servers.size()));
  servers_.assign(servers.begin(), servers.end());
  weights_.clear();
  for (size_t i = 0; i < servers.size(); ++i) {
    weights_[servers[i]] = weights.empty() ? 1 : weights[i];
  }
}

std::vector<uint32_t> SegmentHolders::LaneWeights() const {
  std::vector<uint32_t> weights;
  for (const LaneId& lane : LanesOf(servers_, options_.lanes_per_server)) {
    weights.push_back(weights_.at(lane.server));
  }
  // Only lanes of weight 0 are left: they share all segments equally.
  if (std::ranges::all_of(weights, [](uint32_t weight) { return weight == 0; })) {
    weights.assign(weights.size(), 1);
  }
  return weights;
}

void SegmentHolders::Begin(std::span<const uint32_t> servers, std::span<const uint32_t> weights) {
  RecordServers(servers, weights);
  const std::vector<LaneId> lanes = LanesOf(servers, options_.lanes_per_server);
  const std::vector<uint32_t> owners = PlaceSegments(options_.segment_bytes, LaneWeights());
  for (size_t id = 0; id < segments_.size(); ++id) segments_[id] = {lanes[owners[id]], {}};
  MakePlan();
  for (size_t id = 0; id < segments_.size(); ++id) {
    TUG_CHECK(plan_[id].owner == segments_[id].owner);  // PlaceSegments is balanced
    for (const LaneId& lane : plan_[id].copies) {
      segments_[id].copies.push_back({lane, kUnnumbered});
    }
  }
  changed_ = true;
}

void SegmentHolders::SetServers(std::span<const uint32_t> servers,
                                std::span<const uint32_t> weights) {
  if (std::ranges::equal(servers, servers_)) return;
  const std::vector<uint32_t> before = Servers();
  RecordServers(servers, weights);
  // A joined server is part of the next placement even if it will hold nothing.
  changed_ = changed_ || Servers() != before;
  MakePlan();
}

void SegmentHolders::MakePlan() {
  const std::vector<LaneId> lanes = LanesOf(servers_, options_.lanes_per_server);
  std::vector<uint32_t> server_of_lane;
  for (const LaneId& lane : lanes) server_of_lane.push_back(lane.server);
  std::vector<SegmentHeld> now(segments_.size());
  for (size_t id = 0; id < segments_.size(); ++id) {
    const Segment& segment = segments_[id];
    now[id].bytes = options_.segment_bytes[id];
    if (Contains(lanes, segment.owner)) now[id].owner = IndexOf(lanes, segment.owner);
    for (const bool whole : {true, false}) {
      for (const Copy& copy : segment.copies) {
        if (!Contains(lanes, copy.lane) || InSync(segment, copy) != whole) continue;
        now[id].copies.push_back(IndexOf(lanes, copy.lane));
        now[id].whole_copies += whole ? 1 : 0;
      }
    }
  }
  const std::vector<PlannedHolders> planned =
      PlanHolders(now, server_of_lane, options_.replicas, LaneWeights());
  plan_.assign(segments_.size(), {});
  for (size_t id = 0; id < segments_.size(); ++id) {
    plan_[id].owner = lanes[planned[id].owner];
    for (const uint32_t lane : planned[id].copies) plan_[id].copies.push_back(lanes[lane]);
  }
}

SegmentHolders::Removal SegmentHolders::RemoveServer(uint32_t server) {
  Removal removal;
  std::vector<Segment> left = segments_;
  std::map<LaneId, uint64_t> owned;  // bytes
  for (size_t id = 0; id < left.size(); ++id) owned[left[id].owner] += options_.segment_bytes[id];
  std::set<uint32_t> successors;
  for (size_t id = 0; id < left.size(); ++id) {
    Segment& segment = left[id];
    const Segment& before = segments_[id];
    std::erase_if(segment.copies, [&](const Copy& copy) { return copy.lane.server == server; });
    if (before.owner.server != server) continue;
    ++removal.owned;
    // Prefers a copy on a server that stays, then on the lane that owns least.
    std::optional<std::pair<std::pair<bool, uint64_t>, LaneId>> next;
    for (const Copy& copy : segment.copies) {
      if (!InSync(before, copy)) continue;
      const std::pair<std::pair<bool, uint64_t>, LaneId> rank{
          {!Contains(servers_, copy.lane.server), owned[copy.lane]}, copy.lane};
      if (!next.has_value() || rank < *next) next = rank;
    }
    if (!next.has_value()) {
      ++removal.orphans;
      continue;
    }
    SetOwner(segment, next->second);
    owned[next->second] += options_.segment_bytes[id];
    successors.insert(next->second.server);
  }
  if (removal.orphans > 0) return removal;
  changed_ = changed_ || Contains(Servers(), server);
  segments_ = std::move(left);
  std::erase(servers_, server);
  reported_.erase(server);
  if (!servers_.empty()) MakePlan();
  removal.successors.assign(successors.begin(), successors.end());
  return removal;
}

void SegmentHolders::SetOwner(Segment& segment, const LaneId& owner) {
  if (segment.owner == owner) return;
  segment.owner = owner;
  std::erase_if(segment.copies, [&](const Copy& copy) { return copy.lane == owner; });
  for (Copy& copy : segment.copies) copy.since = kUnnumbered;
}

bool SegmentHolders::NextStep() {
  if (servers_.empty()) return false;
  const bool step = AddWanted() || (AllInSync() && SwitchOver());
  changed_ = changed_ || step;
  return step;
}

// Adds missing planned holders as copies. Drops copies that are neither planned nor in sync.
bool SegmentHolders::AddWanted() {
  bool added = false;
  for (size_t id = 0; id < segments_.size(); ++id) {
    Segment& segment = segments_[id];
    std::vector<LaneId> wanted = plan_[id].copies;
    wanted.push_back(plan_[id].owner);
    const size_t dropped = std::erase_if(segment.copies, [&](const Copy& copy) {
      return !Contains(wanted, copy.lane) && !InSync(segment, copy);
    });
    added = added || dropped > 0;
    for (const LaneId& lane : wanted) {
      const bool has = segment.owner == lane ||
                       std::ranges::find(segment.copies, lane, &Copy::lane) != segment.copies.end();
      if (has) continue;
      segment.copies.push_back({lane, kUnnumbered});
      added = true;
    }
  }
  return added;
}

bool SegmentHolders::SwitchOver() {
  bool switched = false;
  for (size_t id = 0; id < segments_.size(); ++id) {
    Segment& segment = segments_[id];
    const Target& target = plan_[id];
    if (segment.owner != target.owner) {
      segment.copies.push_back({segment.owner, kUnnumbered});
      SetOwner(segment, target.owner);
      switched = true;
    }
    switched |= std::erase_if(segment.copies, [&](const Copy& copy) {
                  return !Contains(target.copies, copy.lane);
                }) > 0;
  }
  return switched;
}

void SegmentHolders::SetPlacement(uint32_t number) {
  TUG_CHECK_GT(number, placement_);
  placement_ = number;
  changed_ = false;
  for (Segment& segment : segments_) {
    for (Copy& copy : segment.copies) {
      if (copy.since == kUnnumbered) copy.since = number;
    }
  }
}

bool SegmentHolders::Wants(uint32_t server, uint32_t copied_placement) const {
  const auto found = reported_.find(server);
  const uint32_t reported = found == reported_.end() ? 0 : found->second;
  return copied_placement <= placement_ && copied_placement > reported;
}

void SegmentHolders::AddReport(uint32_t server, uint32_t copied_placement) {
  if (Wants(server, copied_placement)) reported_[server] = copied_placement;
}

bool SegmentHolders::InSync(const Segment& segment, const Copy& copy) const {
  const auto found = reported_.find(segment.owner.server);
  return copy.since != kUnnumbered && found != reported_.end() && found->second >= copy.since;
}

bool SegmentHolders::AllInSync() const {
  return std::ranges::all_of(segments_, [&](const Segment& segment) {
    return std::ranges::all_of(segment.copies,
                               [&](const Copy& copy) { return InSync(segment, copy); });
  });
}

std::vector<uint32_t> SegmentHolders::Servers() const {
  std::set<uint32_t> servers(servers_.begin(), servers_.end());
  for (const Segment& segment : segments_) {
    servers.insert(segment.owner.server);
    for (const Copy& copy : segment.copies) servers.insert(copy.lane.server);
  }
  return {servers.begin(), servers.end()};
}

std::vector<LaneId> SegmentHolders::Lanes() const {
  return LanesOf(Servers(), options_.lanes_per_server);
}

std::vector<uint32_t> SegmentHolders::Owners() const {
  const std::vector<LaneId> lanes = Lanes();
  std::vector<uint32_t> owners;
  for (const Segment& segment : segments_) owners.push_back(IndexOf(lanes, segment.owner));
  return owners;
}

std::vector<std::vector<uint32_t>> SegmentHolders::Copies() const {
  const std::vector<LaneId> lanes = Lanes();
  std::vector<std::vector<uint32_t>> entries;
  for (size_t id = 0; id < segments_.size(); ++id) {
    const std::vector<Copy>& copies = segments_[id].copies;
    for (size_t i = 0; i < copies.size(); ++i) {
      if (i == entries.size()) entries.emplace_back(segments_.size(), 0);
      entries[i][id] = 1 + IndexOf(lanes, copies[i].lane);
    }
  }
  return entries;
}

SegmentHolders::Count SegmentHolders::CountOf(uint32_t server) const {
  Count count;
  for (const Segment& segment : segments_) {
    count.owned += segment.owner.server == server ? 1 : 0;
    for (const Copy& copy : segment.copies) {
      if (copy.lane.server != server) continue;
      ++count.copies;
      count.missing += InSync(segment, copy) ? 0 : 1;
    }
  }
  return count;
}

uint32_t SegmentHolders::AtRisk() const {
  uint32_t at_risk = 0;
  for (const Segment& segment : segments_) {
    std::set<uint32_t> whole{segment.owner.server};
    for (const Copy& copy : segment.copies) {
      if (InSync(segment, copy)) whole.insert(copy.lane.server);
    }
    at_risk += whole.size() < options_.replicas ? 1 : 0;
  }
  return at_risk;
}

}  // namespace tug
