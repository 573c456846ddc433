// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/timeline.h"

#include <algorithm>
#include <utility>

#include "config/sync_mode.h"

namespace tug {
namespace {

TimelineStart WithClocks(TimelineStart start, const JobConfig& config) {
  start.clocks.resize(CountedClocks(config), start.version);
  return start;
}

// Upper bound on a segment's pushes beyond the start clocks. Each segment has version * virtual
// workers pushes, and of no virtual worker fewer than its start clock.
uint64_t PushesAhead(const TimelineStart& start) {
  uint64_t pushes = start.version * start.clocks.size();
  for (const uint64_t clock : start.clocks) pushes -= std::min(pushes, clock);
  return pushes;
}

}  // namespace

std::vector<uint32_t> ResidualsIn(const Manifest& manifest) {
  std::vector<uint32_t> virtual_workers;
  for (const ManifestFile& file : manifest.files()) {
    if (file.has_virtual_worker()) virtual_workers.push_back(file.virtual_worker());
  }
  return virtual_workers;
}

Timeline::Timeline(const JobConfig& config, TimelineStart begins)
    : start(WithClocks(std::move(begins), config)),
      progress({.virtual_workers = config.cluster().virtual_workers(),
                .start_version = start.version,
                .start_clocks = start.clocks}),
      end(config, start.version),
      finite_loss(config.train()),
      steps_(config.train().steps()),
      pushes_ahead_(PushesAhead(start)),
      min_begun_(config.cluster().virtual_workers()) {
  for (uint32_t v = 0; v < min_begun_.size(); ++v) min_begun_[v] = ClockBeyondStart(v);
}

std::vector<uint64_t> Timeline::StartClocks() const {
  if (!start.clocks.empty()) return start.clocks;
  return std::vector<uint64_t>(min_begun_.size(), start.version);
}

bool Timeline::CanHaveBegun(uint32_t virtual_worker, uint64_t clock) const {
  const std::vector<uint64_t>& ends = end.final_clocks();
  return clock < (virtual_worker < ends.size() ? ends[virtual_worker] : steps_);
}

void Timeline::OnMoved(uint32_t virtual_worker, uint64_t clock) {
  min_begun_[virtual_worker] = std::max(min_begun_[virtual_worker], clock + 1);
}

VirtualWorkerPace Timeline::PaceOf(uint32_t virtual_worker,
                                   std::optional<uint64_t> worker_clock) const {
  const uint64_t least = min_begun_[virtual_worker];
  VirtualWorkerPace pace{.begun = least};
  const std::optional<OwnPace> own = progress.pace(virtual_worker);
  if (own.has_value()) {
    pace.begun = std::max(least, own->clock);
    pace.reported = own->clock;
    pace.step_seconds = own->seconds;
    pace.idle =
        own->clock <= StartClock(virtual_worker) && least <= ClockBeyondStart(virtual_worker);
  }
  if (!worker_clock.has_value() || !CanHaveBegun(virtual_worker, *worker_clock)) return pace;
  // A paused worker has reported all steps except the current one. Its clock may be that of another
  // of its virtual workers, far ahead of one it took over.
  const uint64_t newest = own.has_value() ? std::min(*worker_clock, own->clock) : *worker_clock;
  pace.begun = std::max(pace.begun, newest + 1);
  pace.idle = false;
  return pace;
}

}  // namespace tug
