#include "exchange/step_gate.h"

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

bool StepRules::FinalKnown(const StepGate& gate) const {
  return update_per_push ? !gate.final_clocks.empty() : gate.final_version > 0;
}

bool StepRules::IsPastEnd(const StepGate& gate, uint32_t index, uint64_t clock) const {
  if (!FinalKnown(gate)) return false;
  return clock >= (update_per_push ? gate.final_clocks[index] : gate.final_version);
}

bool StepRules::MayBegin(const StepGate& gate, uint64_t clock) const {
  return FinalKnown(gate) || !(gate.paused || (update_per_push && clock >= steps));
}

}  // namespace tug
