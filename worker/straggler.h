#ifndef TUG_WORKER_STRAGGLER_H_
#define TUG_WORKER_STRAGGLER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/job.pb.h"

namespace tug {

// How much longer virtual workers take than they would (StragglerConfig). Pure, thread-safe: the
// same job has the same pauses whoever carries its virtual workers, and when it is run again.
class Straggler {
 public:
  // `config`: with all fields filled.
  explicit Straggler(const JobConfig& config);

  // What is added to a pass over a block that took `taken`.
  absl::Duration Slowdown(uint32_t virtual_worker, absl::Duration taken) const;
  // What is added to the step at `clock`: with the probability that is set an exponentially
  // distributed time, else 0. A function of (seed, clock, virtual worker).
  absl::Duration Pause(uint64_t clock, uint32_t virtual_worker) const;

 private:
  const StragglerConfig config_;
  const uint64_t seed_;
};

}  // namespace tug

#endif  // TUG_WORKER_STRAGGLER_H_
