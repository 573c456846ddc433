// SPDX-License-Identifier: Apache-2.0
#include "blocks/view_lanes.h"

#include "base/status_macros.h"
#include "blocks/segment_table.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"

namespace tug {

uint32_t LaneIndexOf(const View& view, uint32_t lane_number) {
  for (int i = 0; i < view.lanes_size(); ++i) {
    if (LaneNumber(view.lanes(i)) == lane_number) return static_cast<uint32_t>(i);
  }
  return 0;
}

std::vector<uint32_t> LaneNumberOfSegment(const View& view) {
  std::vector<uint32_t> numbers;
  numbers.reserve(static_cast<size_t>(view.lane_of_segment_size()));
  for (uint32_t index : view.lane_of_segment()) {
    numbers.push_back(LaneNumber(view.lanes(static_cast<int>(index))));
  }
  return numbers;
}

namespace {

// Node id of the server paired with the worker; 0: none.
uint32_t ServerBeside(const View& view, PeerId self) {
  for (const WorkerAssignment& worker : view.workers()) {
    if (WorkerPeer(worker.node_id()) == self) return worker.server_node_id();
  }
  return 0;
}

}  // namespace

std::vector<Lane> LanesFor(const View& view, PeerId self) {
  const uint32_t beside = ServerBeside(view, self);
  std::vector<Lane> lanes;
  for (const Lane& lane : view.lanes()) {
    if (beside == 0 || lane.server_node_id() == beside) lanes.push_back(lane);
  }
  return lanes;
}

std::vector<uint32_t> LaneNumberOfSegmentFor(const View& view, PeerId self) {
  const uint32_t beside = ServerBeside(view, self);
  if (beside == 0) return LaneNumberOfSegment(view);
  return std::vector<uint32_t>(static_cast<size_t>(view.lane_of_segment_size()),
                               LaneNumber(beside, 0));
}

std::vector<PeerId> ReducingLanes(const View& view) {
  std::vector<PeerId> lanes;
  for (const WorkerAssignment& worker : view.workers()) {
    lanes.push_back(LanePeer(LaneNumber(worker.server_node_id(), 0)));
  }
  return lanes;
}

std::map<uint32_t, std::string> ServerNames(const View& view) {
  std::map<uint32_t, std::string> names;
  for (const Lane& lane : view.lanes()) names.emplace(lane.server_node_id(), lane.server());
  return names;
}

PullLanes PullLanesOn(const View& view, uint64_t host_id) {
  std::vector<uint32_t> here, elsewhere;
  for (const Lane& lane : view.lanes()) {
    (host_id != 0 && lane.host_id() == host_id ? here : elsewhere).push_back(LaneNumber(lane));
  }
  PullLanes lanes;
  if (here.empty()) return lanes;
  for (size_t j = 0; j < elsewhere.size(); ++j) lanes[elsewhere[j]] = here[j % here.size()];
  return lanes;
}

PullLanes PullLanesFor(const View& view, PeerId self, const JobConfig& config) {
  if (!config.placement().host_weight_cache()) return {};
  for (const WorkerAssignment& worker : view.workers()) {
    if (WorkerPeer(worker.node_id()) == self) return PullLanesOn(view, worker.host_id());
  }
  return {};
}

std::vector<uint32_t> CachedLanes(const View& view, uint32_t lane_number) {
  std::vector<uint32_t> cached;
  for (const Lane& lane : view.lanes()) {
    if (LaneNumber(lane) != lane_number) continue;
    for (const auto& [owner, pulled_from] : PullLanesOn(view, lane.host_id())) {
      if (pulled_from == lane_number) cached.push_back(owner);
    }
  }
  return cached;
}

ExchangeOptions ExchangeOptionsOf(const JobConfig& config, uint64_t job, const View& view,
                                  PeerId self) {
  ExchangeOptions options{job, view.timeline(), view.number(), LaneNumberOfSegmentFor(view, self),
                          config.comm()};
  options.mode = SyncModeOf(config.sync().policy());
  options.frees_gradients = PlacementModeOf(config).frees_gradients;
  options.pull_lanes = PullLanesFor(view, self, config);
  options.block_names = BlockNames(view.blocks());
  options.seed = config.seed();
  return options;
}

ViewRequest ViewRequestOf(const View& view, PeerId self, const JobConfig& config) {
  ViewRequest request{view.number(), LaneNumberOfSegmentFor(view, self),
                      PullLanesFor(view, self, config)};
  for (const Lane& lane : LanesFor(view, self)) {
    request.lanes.push_back({LanePeer(LaneNumber(lane)), lane.endpoint()});
  }
  return request;
}

std::vector<std::vector<uint32_t>> LaneNumbersOfCopies(const View& view) {
  if (view.copies().empty()) return {};
  std::vector<std::vector<uint32_t>> numbers(static_cast<size_t>(view.lane_of_segment_size()));
  for (const SegmentCopies& copies : view.copies()) {
    for (int id = 0; id < copies.lane_of_segment_size(); ++id) {
      const uint32_t lane = copies.lane_of_segment(id);
      if (lane == 0) continue;
      numbers[static_cast<size_t>(id)].push_back(
          LaneNumber(view.lanes(static_cast<int>(lane) - 1)));
    }
  }
  return numbers;
}

absl::Status ConnectToLanes(const View& view, PeerId self, Transport& transport) {
  for (const Lane& lane : LanesFor(view, self)) {
    const PeerId peer = LanePeer(LaneNumber(lane));
    if (peer != self) RETURN_IF_ERROR(transport.Connect(peer, lane.endpoint()));
  }
  return absl::OkStatus();
}

}  // namespace tug
