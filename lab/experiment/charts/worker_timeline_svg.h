// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_WORKER_TIMELINE_SVG_H_
#define TUG_LAB_EXPERIMENT_CHARTS_WORKER_TIMELINE_SVG_H_

#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/results/worker_timeline.h"

namespace tug {

struct DrawnWorkers {
  std::string name;  // of the job, "ssp(1)"
  std::string note;  // after it; may be empty
  const std::vector<WorkerTimeline>* workers = nullptr;
};

// An <svg>: for each job its workers one below another, with a numbered box for each step, hatched
// where it waits for weights. All share one time axis, up to where the slowest worker of any job
// has completed `steps` steps. `slow`: the virtual worker to mark. Skips jobs without steps; ""
// without any. Pure, thread-safe.
std::string WorkerTimelinesSvg(const std::vector<DrawnWorkers>& jobs, size_t steps,
                               std::optional<uint32_t> slow);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_WORKER_TIMELINE_SVG_H_
