// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_STRAGGLER_H_
#define TUG_WORKER_CORE_STRAGGLER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/job.pb.h"

namespace tug {

// Artificial delays of virtual workers (StragglerConfig). Pure, thread-safe: a job has the same
// pauses in every run, whichever process runs its virtual workers.
class Straggler {
 public:
  // `config`: all fields filled.
  explicit Straggler(const JobConfig& config);

  // Time added to a pass over a block that took `taken`.
  absl::Duration Slowdown(uint32_t virtual_worker, absl::Duration taken) const;
  // Time added to the step at `clock`: exponentially distributed with the configured probability,
  // else 0. A function of (seed, clock, virtual worker).
  absl::Duration Pause(uint64_t clock, uint32_t virtual_worker) const;

 private:
  const StragglerConfig config_;
  const uint64_t seed_;
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_STRAGGLER_H_
