// SPDX-License-Identifier: Apache-2.0
#include "worker/core/lane_room.h"

#include <algorithm>

namespace tug {

bool WaitsForRoomOnLanes(const ControlBoard::Orders& newest, std::span<const uint32_t> place,
                         bool paused, uint32_t view, std::span<const uint32_t> carried) {
  if (newest.pause && !(paused && newest.view == view)) return false;
  return carried.size() == 1 && (newest.view == view || std::equal(place.begin(), place.end(),
                                                                   carried.begin(), carried.end()));
}

}  // namespace tug
