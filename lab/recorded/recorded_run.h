// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_RECORDED_RECORDED_RUN_H_
#define TUG_LAB_RECORDED_RECORDED_RUN_H_

// A run in which every push was an update and the order is on record (server/sync/order_log.h), in
// the form needed to compute it again: the gradients, the weights they were computed with, and the
// order in which they updated every segment.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/sync/order_log.h"

namespace tug {

// Version of a segment whose weights a step does not read.
inline constexpr uint64_t kAnyVersion = std::numeric_limits<uint64_t>::max();

// The gradient of a virtual worker at a clock.
struct RecordedStep {
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  // By segment: version that the gradient was computed with, or kAnyVersion.
  std::vector<uint64_t> weights_version;
};

// A new version of a segment, made from the previous one and a step's gradient.
struct RecordedUpdate {
  size_t step = 0;  // index into RecordedRun::steps
  uint64_t weights_version = 0;
  uint32_t flags = 0;  // OrderRecord::flags
};

struct RecordedRun {
  uint32_t virtual_workers = 1;
  std::vector<RecordedStep> steps;                   // by virtual worker, then clock
  std::vector<std::vector<RecordedUpdate>> updates;  // by segment, in order

  size_t update_count() const;
};

// Assembles a run from the logs of a job's lanes. Pure. Errors: FAILED_PRECONDITION: the run did
// not end in order; or it started from a checkpoint, which falls in the middle of steps (each
// segment has pushes that others miss, computed with weights that are not stored); or a record is
// not exact. DATA_LOSS: the versions of a segment are not consecutive, or a step lacks a segment.
absl::StatusOr<RecordedRun> AssembleRun(std::span<const OrderLog> logs);

}  // namespace tug

#endif  // TUG_LAB_RECORDED_RECORDED_RUN_H_
