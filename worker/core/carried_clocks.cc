// SPDX-License-Identifier: Apache-2.0
#include "worker/core/carried_clocks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tug {

void CarriedClocks::SetGate(StepGate gate) {
  gate_ = std::move(gate);
  TUG_CHECK(!gate_.FinalKnown() || gate_.final_clocks.size() == clocks_.size());
}

void CarriedClocks::Carry(std::vector<uint64_t> clocks, StepGate gate) {
  clocks_ = std::move(clocks);
  SetGate(std::move(gate));
}

uint64_t CarriedClocks::StepClock() const {
  uint64_t lowest = *std::max_element(clocks_.begin(), clocks_.end());
  for (uint32_t v = 0; v < clocks_.size(); ++v) {
    if (!gate_.IsPastEnd(v, clocks_[v])) lowest = std::min(lowest, clocks_[v]);
  }
  return lowest;
}

bool CarriedClocks::AllFinished() const {
  for (uint32_t v = 0; v < clocks_.size(); ++v) {
    if (!gate_.IsPastEnd(v, clocks_[v])) return false;
  }
  return true;
}

std::vector<uint32_t> CarriedClocks::TakersOf(uint64_t clock) const {
  std::vector<uint32_t> takers;
  for (uint32_t v = 0; v < clocks_.size(); ++v) {
    if (Takes(v, clock)) takers.push_back(v);
  }
  return takers;
}

void CarriedClocks::SkipTo(uint64_t clock, std::vector<SkippedSteps>& skipped) {
  for (uint32_t v = 0; v < clocks_.size(); ++v) {
    if (clocks_[v] >= clock) continue;
    skipped.push_back({v, clocks_[v], clock});
    clocks_[v] = clock;
  }
}

PullOrder CarriedClocks::Order(uint32_t block, uint64_t clock) const {
  const auto count = static_cast<uint32_t>(clocks_.size());
  uint32_t first = 0;
  while (first < count && !Takes(first, clock)) ++first;
  if (first == count) return {block, clock};
  uint32_t end = first + 1;
  while (end < count && Takes(end, clock)) ++end;
  return {block, clock, false, first, end - first};
}

PullOrder CarriedClocks::OrderAfter(uint32_t block, uint64_t clock,
                                    std::span<const uint32_t> takers) const {
  CarriedClocks after = *this;
  for (const uint32_t v : takers) after.OnTaken(v, clock);
  return after.AllFinished() ? after.LastOrder(block) : after.Order(block, after.StepClock());
}

PullOrder CarriedClocks::LastOrder(uint32_t block) const {
  const bool exact = !mode_.VersionAt(gate_.last_clock).has_value();
  return {block, exact ? gate_.last_clock : StepClock(), exact};
}

}  // namespace tug
