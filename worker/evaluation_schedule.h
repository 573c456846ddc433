#ifndef TUG_WORKER_EVALUATION_SCHEDULE_H_
#define TUG_WORKER_EVALUATION_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exchange/step_gate.h"
#include "proto/sync_mode.h"

namespace tug {

// Which evaluations the virtual workers that a process carries have yet to make: one every
// `interval` versions, and that of the final version. Virtual workers without samples for it make
// none. Pure.
class EvaluationSchedule {
 public:
  // By index among those carried, and whether it is the last evaluation.
  using MicroBatches = std::function<uint32_t(uint32_t virtual_worker, bool last)>;
  struct Due {
    uint32_t virtual_worker = 0;
    uint64_t version = 0;
  };

  // `interval` 0: only the last one. `micro_batches` none: no samples.
  EvaluationSchedule(uint64_t interval, const SyncMode& mode, MicroBatches micro_batches)
      : interval_(interval), mode_(mode), micro_batches_(std::move(micro_batches)) {}

  // Virtual workers at these clocks begin a timeline from `start_version`.
  void Begin(std::span<const uint64_t> clocks, uint64_t start_version);
  // They become others: by index their clocks, and the index so far of those that were carried.
  // `version`: of the weights here.
  void Carry(std::span<const uint64_t> clocks, std::span<const std::optional<uint32_t>> before,
             uint64_t version);

  uint32_t MicroBatchesOf(uint32_t virtual_worker, bool last) const {
    return micro_batches_ ? micro_batches_(virtual_worker, last) : 0;
  }
  // An evaluation that is due at `version` of the weights, which counts as made then. The one of
  // the final version is none of them.
  std::optional<Due> TakeDue(uint64_t version, const StepGate& gate);
  // It is due once more.
  void PutBack(const Due& due) { due_[due.virtual_worker] = due.version; }
  // The first virtual worker from this one on with a share of the last evaluation.
  std::optional<uint32_t> NextOfLast(uint32_t virtual_worker, size_t carried) const;

 private:
  const uint64_t interval_;
  const SyncMode mode_;
  const MicroBatches micro_batches_;
  std::vector<uint64_t> due_;  // by carried virtual worker: version of the next; empty: none
};

}  // namespace tug

#endif  // TUG_WORKER_EVALUATION_SCHEDULE_H_
