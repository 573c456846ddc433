#ifndef TUG_COORDINATOR_TIMELINE_H_
#define TUG_COORDINATOR_TIMELINE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/checkpoint_collector.h"
#include "coordinator/failed_checkpoints.h"
#include "coordinator/finite_loss.h"
#include "coordinator/job_end.h"
#include "coordinator/progress.h"
#include "coordinator/reported_residuals.h"
#include "proto/job.pb.h"
#include "proto/manifest.pb.h"
#include "proto/sync_mode.h"

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
inline std::vector<uint32_t> ResidualsIn(const Manifest& manifest) {
  std::vector<uint32_t> virtual_workers;
  for (const ManifestFile& file : manifest.files()) {
    if (file.has_virtual_worker()) virtual_workers.push_back(file.virtual_worker());
  }
  return virtual_workers;
}

// What the coordinator gathers during one timeline of the job. A job that goes back to a checkpoint
// begins another.
struct Timeline {
  // `config`: complete. REQUIRES: start.version < train.steps.
  Timeline(const JobConfig& config, TimelineStart begins)
      : start(WithClocks(std::move(begins), CountedClocks(config))),
        progress({.virtual_workers = config.cluster().virtual_workers(),
                  .start_version = start.version,
                  .start_clocks = start.clocks}),
        checkpoints(/*lanes=*/1, CountedClocks(config), NewestCheckpoint(config)),
        end(config, start.version),
        finite_loss(config.train()) {}

  // Where a virtual worker begins.
  uint64_t StartClock(uint32_t virtual_worker) const {
    return virtual_worker < start.clocks.size() ? start.clocks[virtual_worker] : start.version;
  }

  // The first clock of it that no segment of the checkpoint has: of each segment clocks add up to
  // as many pushes, and of no virtual worker are they less than where it begins.
  uint64_t ClockBeyondStart(uint32_t virtual_worker) const {
    uint64_t pushes = start.version * start.clocks.size();
    for (const uint64_t clock : start.clocks) pushes -= std::min(pushes, clock);
    return StartClock(virtual_worker) + pushes;
  }

  const TimelineStart start;  // with all clocks, where they are counted
  Progress progress;
  ReportedResiduals residuals;
  CheckpointCollector checkpoints;  // SetPlacement with the view
  FailedCheckpoints failed;
  JobEnd end;
  FiniteLoss finite_loss;

 private:
  static TimelineStart WithClocks(TimelineStart start, uint32_t count) {
    start.clocks.resize(count, start.version);
    return start;
  }
  // The version that needs no checkpoint any more when it begins, if any.
  std::optional<uint64_t> NewestCheckpoint(const JobConfig& config) const {
    if (start.restore_path.empty() && config.checkpoint().initial()) return std::nullopt;
    return start.version;
  }
};

}  // namespace tug

#endif  // TUG_COORDINATOR_TIMELINE_H_
