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

absl::Status ConnectToLanes(const View& view, PeerId self, Transport& transport) {
  for (const Lane& lane : view.lanes()) {
    const PeerId peer = LanePeer(LaneNumber(lane));
    if (peer != self) RETURN_IF_ERROR(transport.Connect(peer, lane.endpoint()));
  }
  return absl::OkStatus();
}

}  // namespace tug
