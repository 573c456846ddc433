#ifndef TUG_RECORDED_RECORDED_RUN_H_
#define TUG_RECORDED_RECORDED_RUN_H_

// A run whose pushes were updates in an order that is on record (server/order_log.h), as that is
// needed to compute it again: which gradients there were, of which weights, and in which order they
// became updates of every segment.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/order_log.h"

namespace tug {

// Of a segment whose weights a step does not read: any will do.
inline constexpr uint64_t kAnyVersion = std::numeric_limits<uint64_t>::max();

// A virtual worker's gradient.
struct RecordedStep {
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  std::vector<uint64_t> weights_version;  // by segment, that it is of, or kAnyVersion
};

// A version of a segment, made of the one before and a step's gradient.
struct RecordedUpdate {
  size_t step = 0;  // in RecordedRun::steps
  uint64_t weights_version = 0;
  uint32_t flags = 0;  // OrderRecord's
};

struct RecordedRun {
  uint32_t virtual_workers = 1;
  std::vector<RecordedStep> steps;                   // by virtual worker, then clock
  std::vector<std::vector<RecordedUpdate>> updates;  // by segment, in order

  size_t update_count() const;
};

// Puts together what the lanes of a job have logged. Pure. Errors: FAILED_PRECONDITION: the run did
// not end in order, or began from a checkpoint, which lies amid steps (each of its segments has had
// pushes that others lack, of weights that nobody has), or a record is not exact; DATA_LOSS:
// versions of a segment do not follow one another, or a step lacks a segment.
absl::StatusOr<RecordedRun> AssembleRun(std::span<const OrderLog> logs);

}  // namespace tug

#endif  // TUG_RECORDED_RECORDED_RUN_H_
