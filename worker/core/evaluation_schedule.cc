// SPDX-License-Identifier: Apache-2.0
#include "worker/core/evaluation_schedule.h"

#include <algorithm>
#include <utility>

namespace tug {

void EvaluationSchedule::Begin(std::span<const uint64_t> clocks, uint64_t start_version) {
  if (interval_ == 0) return;
  for (const uint64_t clock : clocks) {
    const uint64_t version = mode_.VersionAt(clock).value_or(start_version);
    due_.push_back((version / interval_ + 1) * interval_);
  }
}

void EvaluationSchedule::Carry(std::span<const uint64_t> clocks,
                               std::span<const std::optional<uint32_t>> before, uint64_t version) {
  if (interval_ == 0) return;
  std::vector<uint64_t> due;
  for (size_t v = 0; v < clocks.size(); ++v) {
    if (before[v].has_value()) {
      due.push_back(due_[*before[v]]);
    } else {  // the evaluation at its clock may not have been reported
      const uint64_t at = mode_.VersionAt(clocks[v]).value_or(version);
      due.push_back(std::max<uint64_t>((at + interval_ - 1) / interval_, 1) * interval_);
    }
  }
  due_ = std::move(due);
}

std::optional<EvaluationSchedule::Due> EvaluationSchedule::TakeDue(uint64_t version,
                                                                   const StepGate& gate) {
  while (!due_.empty()) {
    const auto first = std::min_element(due_.begin(), due_.end());
    if (*first > version || (gate.FinalKnown() && *first >= gate.final_version)) break;
    const Due due{static_cast<uint32_t>(first - due_.begin()), *first};
    *first += interval_;
    if (MicroBatchesOf(due.virtual_worker, false) > 0) return due;
  }
  return std::nullopt;
}

std::optional<uint32_t> EvaluationSchedule::NextOfLast(uint32_t virtual_worker,
                                                       size_t carried) const {
  for (uint32_t v = virtual_worker; v < carried; ++v) {
    if (MicroBatchesOf(v, true) > 0) return v;
  }
  return std::nullopt;
}

}  // namespace tug
