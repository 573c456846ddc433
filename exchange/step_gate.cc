// SPDX-License-Identifier: Apache-2.0
#include "exchange/step_gate.h"

#include <algorithm>

namespace tug {

StepGate GateOf(const ControlBoard::Orders& orders, std::span<const uint32_t> carried) {
  StepGate gate{.paused = !orders.go || orders.pause};
  if (!orders.go) return gate;
  gate.final_version = gate.last_clock = orders.final_version;
  if (orders.final_clocks.empty()) {
    if (orders.final_version > 0) gate.final_clocks.assign(carried.size(), orders.final_version);
    return gate;
  }
  for (const uint32_t virtual_worker : carried) {
    gate.final_clocks.push_back(orders.final_clocks.at(virtual_worker));
  }
  gate.last_clock = *std::max_element(orders.final_clocks.begin(), orders.final_clocks.end());
  return gate;
}

}  // namespace tug
