// SPDX-License-Identifier: Apache-2.0
#include "blocks/worker_place.h"

#include "base/check.h"

namespace tug {

WorkerPlace PlaceOf(const View& view, uint32_t node_id) {
  for (const WorkerAssignment& worker : view.workers()) {
    if (worker.node_id() != node_id) continue;
    WorkerPlace place{{worker.virtual_workers().begin(), worker.virtual_workers().end()},
                      {worker.start_clocks().begin(), worker.start_clocks().end()}};
    if (place.start_clocks.empty()) {
      place.start_clocks.assign(place.virtual_workers.size(), view.start_version());
    }
    TUG_CHECK_EQ(place.start_clocks.size(), place.virtual_workers.size());
    return place;
  }
  return {};
}

VirtualWorkerRun FirstRun(std::span<const uint32_t> virtual_workers) {
  TUG_CHECK(!virtual_workers.empty());
  VirtualWorkerRun run{.first = virtual_workers.front()};
  while (run.count < virtual_workers.size() &&
         virtual_workers[run.count] == run.first + run.count) {
    ++run.count;
  }
  return run;
}

}  // namespace tug
