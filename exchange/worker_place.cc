#include "exchange/worker_place.h"

#include "base/check.h"
#include "proto/sync_mode.h"

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

void SetSync(const SyncConfig& sync, const WorkerPlace& place, ExchangeOptions& options) {
  options.update_per_push = SyncModeOf(sync.policy()).update_per_push;
  if (place.virtual_workers.empty()) return;
  options.virtual_worker = place.virtual_workers.front();
  options.virtual_worker_count = 0;
  for (const uint32_t virtual_worker : place.virtual_workers) {
    if (virtual_worker != options.virtual_worker + options.virtual_worker_count) break;
    ++options.virtual_worker_count;
  }
}

}  // namespace tug
