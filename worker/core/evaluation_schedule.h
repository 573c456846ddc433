// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_EVALUATION_SCHEDULE_H_
#define TUG_WORKER_CORE_EVALUATION_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "config/sync_mode.h"
#include "exchange/step_gate.h"

namespace tug {

// Pending evaluations of the virtual workers that this process runs: one every `interval` versions,
// and one of the final version. A virtual worker without samples for an evaluation skips it. Pure.
class EvaluationSchedule {
 public:
  // Micro-batches of an evaluation. `virtual_worker`: index among those run here; `last`: whether
  // it is the last evaluation.
  using MicroBatches = std::function<uint32_t(uint32_t virtual_worker, bool last)>;
  struct Due {
    uint32_t virtual_worker = 0;
    uint64_t version = 0;
  };

  // `interval` 0: only the last one. `micro_batches` empty: no samples.
  EvaluationSchedule(uint64_t interval, const SyncMode& mode, MicroBatches micro_batches)
      : interval_(interval), mode_(mode), micro_batches_(std::move(micro_batches)) {}

  // Begins a timeline at `start_version` with virtual workers at these clocks.
  void Begin(std::span<const uint64_t> clocks, uint64_t start_version);
  // Replaces the virtual workers. By index: their clocks, and their previous index if they were run
  // here. `version`: of the weights here.
  void Carry(std::span<const uint64_t> clocks, std::span<const std::optional<uint32_t>> before,
             uint64_t version);

  uint32_t MicroBatchesOf(uint32_t virtual_worker, bool last) const {
    return micro_batches_ ? micro_batches_(virtual_worker, last) : 0;
  }
  // Returns an evaluation due at weights `version` and counts it as made; never that of the final
  // version.
  std::optional<Due> TakeDue(uint64_t version, const StepGate& gate);
  // Makes the evaluation due again.
  void PutBack(const Due& due) { due_[due.virtual_worker] = due.version; }
  // First virtual worker from this index on with samples for the last evaluation.
  std::optional<uint32_t> NextOfLast(uint32_t virtual_worker, size_t carried) const;

 private:
  const uint64_t interval_;
  const SyncMode mode_;
  const MicroBatches micro_batches_;
  std::vector<uint64_t> due_;  // by virtual worker: version of its next evaluation; empty: none
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_EVALUATION_SCHEDULE_H_
