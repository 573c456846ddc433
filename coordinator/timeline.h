#ifndef TUG_COORDINATOR_TIMELINE_H_
#define TUG_COORDINATOR_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/finite_loss.h"
#include "coordinator/job_end.h"
#include "coordinator/progress.h"
#include "coordinator/reported_residuals.h"
#include "proto/job.pb.h"
#include "proto/manifest.pb.h"

namespace tug {

// Where a timeline begins.
struct TimelineStart {
  uint32_t number = 1;
  uint64_t version = 0;      // 0 = initialise, otherwise that of the checkpoint in `restore_path`
  std::string restore_path;  // empty: none
  // By virtual worker, where every push is an update (Manifest.clocks); empty: all at `version`.
  std::vector<uint64_t> clocks;
  // Virtual workers of which the checkpoint has what their pushes had left out.
  std::vector<uint32_t> residuals = {};
};

// The virtual workers of which a checkpoint has that.
std::vector<uint32_t> ResidualsIn(const Manifest& manifest);

// What workers report during one timeline of the job, and how it ends. A job that goes back to a
// checkpoint begins another. Not thread-safe.
struct Timeline {
  // `config`: complete. REQUIRES: begins.version < train.steps.
  Timeline(const JobConfig& config, TimelineStart begins);

  // By virtual worker, where it begins.
  std::vector<uint64_t> StartClocks() const;
  // The step that the job ends with, as far as is known.
  uint64_t LastStep() const { return end.final_version().value_or(steps_); }
  // Whether a virtual worker can have taken the step, or begun it, as the job's end stands.
  bool CanHaveBegun(uint32_t virtual_worker, uint64_t clock) const;
  // Another worker goes on with the virtual worker at this clock. It takes that step again, which
  // some segment may have already, as does a run that goes on.
  void OnMoved(uint32_t virtual_worker, uint64_t clock);
  // Where the virtual worker is. `worker_clock`: the step that its worker is in; none: it has begun
  // none, or nobody carries the virtual worker.
  VirtualWorkerPace PaceOf(uint32_t virtual_worker, std::optional<uint64_t> worker_clock) const;

  const TimelineStart start;  // with all clocks, where lanes count them
  Progress progress;
  ReportedResiduals residuals;
  JobEnd end;
  FiniteLoss finite_loss;

 private:
  uint64_t StartClock(uint32_t virtual_worker) const {
    return start.clocks.empty() ? start.version : start.clocks[virtual_worker];
  }
  // The first clock of it that no segment of the checkpoint has.
  uint64_t ClockBeyondStart(uint32_t virtual_worker) const {
    return StartClock(virtual_worker) + pushes_ahead_;
  }

  const uint64_t steps_;         // train.steps
  const uint64_t pushes_ahead_;  // of each segment of the checkpoint, beyond the start clocks
  // By virtual worker: what some segment may have of it, whoever carries it.
  std::vector<uint64_t> least_begun_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_TIMELINE_H_
