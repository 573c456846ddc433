// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_TIMELINE_H_
#define TUG_COORDINATOR_PROGRESS_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/progress/finite_loss.h"
#include "coordinator/progress/job_end.h"
#include "coordinator/progress/progress.h"
#include "coordinator/progress/reported_residuals.h"
#include "proto/job.pb.h"
#include "proto/manifest.pb.h"

namespace tug {

// Start of a timeline.
struct TimelineStart {
  uint32_t number = 1;
  uint64_t version = 0;      // 0: initialise; else version of the checkpoint in `restore_path`
  std::string restore_path;  // empty: none
  // By virtual worker, if every push is an update (Manifest.clocks); empty: all at `version`.
  std::vector<uint64_t> clocks;
  // Virtual workers whose residuals are in the checkpoint.
  std::vector<uint32_t> residuals = {};
};

// Virtual workers whose residuals are in a checkpoint.
std::vector<uint32_t> ResidualsIn(const Manifest& manifest);

// Progress of one timeline of the job, and its end. A rollback begins another timeline. Not
// thread-safe.
struct Timeline {
  // `config`: complete. REQUIRES: begins.version < train.steps.
  Timeline(const JobConfig& config, TimelineStart begins);

  // First clock by virtual worker.
  std::vector<uint64_t> StartClocks() const;
  // Last step of the job, as far as known.
  uint64_t LastStep() const { return end.final_version().value_or(steps_); }
  // Whether a virtual worker can have begun the step, given the job's end.
  bool CanHaveBegun(uint32_t virtual_worker, uint64_t clock) const;
  // Another worker resumes the virtual worker at this clock. Some segment may already have its push
  // of that step, so the step counts as begun.
  void OnMoved(uint32_t virtual_worker, uint64_t clock);
  // Progress of the virtual worker. `worker_clock`: current step of its worker; none: it has begun
  // none, or the virtual worker has no worker.
  VirtualWorkerPace PaceOf(uint32_t virtual_worker, std::optional<uint64_t> worker_clock) const;

  const TimelineStart start;  // with all clocks, if lanes count them
  Progress progress;
  ReportedResiduals residuals;
  JobEnd end;
  FiniteLoss finite_loss;

 private:
  uint64_t StartClock(uint32_t virtual_worker) const {
    return start.clocks.empty() ? start.version : start.clocks[virtual_worker];
  }
  // First clock that certainly no segment of the checkpoint has.
  uint64_t ClockBeyondStart(uint32_t virtual_worker) const {
    return StartClock(virtual_worker) + pushes_ahead_;
  }

  const uint64_t steps_;         // train.steps
  const uint64_t pushes_ahead_;  // bound on a segment's pushes beyond the start clocks
  // Lower bound of VirtualWorkerPace::begun, by virtual worker: some segment may have earlier
  // pushes.
  std::vector<uint64_t> min_begun_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_TIMELINE_H_
