#include "exchange/view_lanes.h"

#include "base/status_macros.h"

namespace tug {

std::vector<uint32_t> LaneNumberOfSegment(const View& view) {
  std::vector<uint32_t> numbers;
  numbers.reserve(static_cast<size_t>(view.lane_of_segment_size()));
  for (uint32_t index : view.lane_of_segment()) {
    numbers.push_back(LaneNumber(view.lanes(static_cast<int>(index))));
  }
  return numbers;
}

ViewRequest ViewRequestOf(const View& view) {
  ViewRequest request{view.number(), LaneNumberOfSegment(view)};
  for (const Lane& lane : view.lanes()) {
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
  for (const Lane& lane : view.lanes()) {
    const PeerId peer = LanePeer(LaneNumber(lane));
    if (peer != self) RETURN_IF_ERROR(transport.Connect(peer, lane.endpoint()));
  }
  return absl::OkStatus();
}

}  // namespace tug
