#include "worker/orders_gate.h"

#include <algorithm>

namespace tug {

StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried) {
  StepGate gate{.paused = !orders.go || orders.pause};
  if (!orders.go) return gate;
  gate.final_version = orders.final_version;
  if (orders.final_clocks.empty()) return gate;
  for (const uint32_t virtual_worker : carried) {
    gate.final_clocks.push_back(orders.final_clocks.at(virtual_worker));
  }
  gate.last_clock = *std::max_element(orders.final_clocks.begin(), orders.final_clocks.end());
  return gate;
}

bool WaitsForRoomOnLanes(const ControlBoard::Orders& newest, std::span<const uint32_t> place,
                         bool paused, uint32_t view, std::span<const uint32_t> carried) {
  if (newest.pause && !(paused && newest.view == view)) return false;
  return carried.size() == 1 && (newest.view == view || std::equal(place.begin(), place.end(),
                                                                   carried.begin(), carried.end()));
}

}  // namespace tug
