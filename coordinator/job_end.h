#ifndef TUG_COORDINATOR_JOB_END_H_
#define TUG_COORDINATOR_JOB_END_H_

// With which step a job ends.
//
// It is known from the beginning, train.steps, unless
//   - a stop is asked for: workers are told to pause, each says what it has begun, and the job ends
//     after the latest step begun, which everybody can reach and nobody has passed, or at once if
//     nobody has begun one;
//   - every push is an update (sync.policy SSP, ASP): virtual workers end at clocks of their own,
//     which add up to the job's steps times their number. As long as these are not known none
//     begins clock train.steps (worker/step_machine.h), so there are never too many. Shortly
//     before the first gets there workers are told to pause, and what is left is dealt: under ASP
//     so that all are done at about the same time, by what their steps take; under SSP to whoever
//     is behind, so that nobody ends further ahead than it may begin.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Where a virtual worker is.
struct VirtualWorkerPace {
  uint64_t begun = 0;     // the first clock that it has not begun
  uint64_t reported = 0;  // the first that it has not reported; read where every push is an update
  double step_seconds = 0;  // finite; 0 = not known yet
  bool away = false;        // nobody carries it, and nobody waits: it gets no further step
  bool idle = false;        // nobody has begun a step of it yet; `begun` may say more than that
};

// Not thread-safe.
class JobEnd {
 public:
  // `config`: complete. `start`: of a run that goes on, else 0.
  JobEnd(const JobConfig& config, uint64_t start_version);

  // An orderly end as soon as can be.
  void RequestStop();
  bool stop_requested() const { return stop_requested_; }

  // Looks at all virtual workers. `all_paused`: every worker has taken the order to pause, or is
  // done, so that `begun` stays.
  void Update(std::span<const VirtualWorkerPace> paces, bool all_paused);

  // Workers are to begin no further step before the end is known.
  bool pausing() const { return pausing_; }
  std::optional<uint64_t> final_version() const { return final_version_; }
  // By virtual worker, where every push is an update: steps with clock < this are run. Empty as
  // long as final_version() is none, and where it is for all.
  const std::vector<uint64_t>& final_clocks() const { return final_clocks_; }

 private:
  bool IsNear(std::span<const VirtualWorkerPace> paces) const;
  void SettleClocks(std::span<const VirtualWorkerPace> paces);

  // None: virtual workers all end at the clock that is the final version.
  const std::optional<uint64_t> most_lead_;
  const uint64_t start_;        // version that the job's timeline begins with
  const uint64_t steps_;        // train.steps
  const double order_seconds_;  // an order may take so long to arrive, and its answer to come
  bool stop_requested_ = false;
  bool pausing_ = false;
  std::optional<uint64_t> final_version_;
  std::vector<uint64_t> final_clocks_;
};

// Clocks of which none is before `paces`' `begun`, that add up to `total`, or to what has been
// begun if that is more. `most_lead`: kMostLead deals by speed, less to whoever is behind.
std::vector<uint64_t> DealClocks(std::span<const VirtualWorkerPace> paces, uint64_t total,
                                 uint64_t most_lead);

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_END_H_
