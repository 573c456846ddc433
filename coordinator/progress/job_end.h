// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_JOB_END_H_
#define TUG_COORDINATOR_PROGRESS_JOB_END_H_

// Determines the last step of a job.
//
// It is train.steps from the start, unless
//   - a stop is requested: workers pause and report what they have begun. The job ends after the
//     latest step begun, which all workers can reach and none has passed, or at once if none was
//     begun;
//   - every push is an update (sync.policy SSP, ASP): virtual workers end at clocks of their own,
//     which add up to the job's steps times their number. Until these are known, none begins clock
//     train.steps (worker/core/step_machine.h), so the sum is not exceeded. Shortly before the
//     first gets there, workers pause and the remaining clocks are distributed: under ASP by step
//     time, so that all finish at about the same time; under SSP to those behind, so that none ends
//     further ahead than it may begin.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Progress of a virtual worker.
struct VirtualWorkerPace {
  uint64_t begun = 0;       // first clock it has not begun
  uint64_t reported = 0;    // first clock it has not reported; used if every push is an update
  double step_seconds = 0;  // finite; 0: unknown
  bool away = false;        // it has no worker and is not waited for: no further steps
  bool idle = false;        // none of its steps was begun, though `begun` may be higher
};

// Not thread-safe.
class JobEnd {
 public:
  // `config`: complete. `start_version`: of a resumed run, else 0.
  JobEnd(const JobConfig& config, uint64_t start_version);

  // Requests an orderly end as soon as possible.
  void RequestStop();
  bool stop_requested() const { return stop_requested_; }

  // Updates the end from all virtual workers. `all_paused`: all workers have paused or finished, so
  // that `begun` no longer changes.
  void Update(std::span<const VirtualWorkerPace> paces, bool all_paused);

  // Workers must not begin another step until the end is known.
  bool pausing() const { return pausing_; }
  std::optional<uint64_t> final_version() const { return final_version_; }
  // By virtual worker, if every push is an update: steps with clock < this are run. Empty while
  // final_version() is none, and if final_version() applies to all.
  const std::vector<uint64_t>& final_clocks() const { return final_clocks_; }

 private:
  bool IsNear(std::span<const VirtualWorkerPace> paces) const;
  void SettleClocks(std::span<const VirtualWorkerPace> paces);

  // None: all virtual workers end at clock final_version().
  const std::optional<uint64_t> max_lead_;
  const uint64_t start_;        // version that the timeline starts from
  const uint64_t steps_;        // train.steps
  const double order_seconds_;  // time for an order to arrive and its effect to be reported
  bool stop_requested_ = false;
  bool pausing_ = false;
  std::optional<uint64_t> final_version_;
  std::vector<uint64_t> final_clocks_;
};

// Distributes clocks: none below `begun` of its pace, adding up to `total`, or to the sum of
// `begun` if that is more. `max_lead`: kMaxLead distributes by speed, smaller values to those
// behind.
std::vector<uint64_t> DealClocks(std::span<const VirtualWorkerPace> paces, uint64_t total,
                                 uint64_t max_lead);

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_JOB_END_H_
