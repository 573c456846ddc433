#ifndef TUG_EXPERIMENT_WORKER_TIMELINE_SVG_H_
#define TUG_EXPERIMENT_WORKER_TIMELINE_SVG_H_

#include <optional>
#include <string>
#include <vector>

#include "experiment/worker_timeline.h"

namespace tug {

struct DrawnWorkers {
  std::string name;  // of the job, "ssp(1)"
  std::string note;  // behind it; may be empty
  const std::vector<WorkerTimeline>* workers = nullptr;
};

// An <svg>: for each job its workers one under another, a box for each step with its number,
// hatched where it waits for weights. One time axis for all, up to where the slowest worker of any
// of them has done `steps`. `slow`: the virtual worker that is marked. Jobs without steps are left
// out; "" without any. Colours: as timeline_svg.h, and --slow. Pure, thread-safe.
std::string WorkerTimelinesSvg(const std::vector<DrawnWorkers>& jobs, size_t steps,
                               std::optional<uint32_t> slow);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WORKER_TIMELINE_SVG_H_
