#include "server/view_live_set.h"

#include <utility>
#include <vector>

#include "proto/placement_mode.h"

namespace tug {

LiveSet LiveSetOf(const View& view, const JobConfig& config, uint32_t server_node_id) {
  const uint32_t virtual_workers = config.cluster().virtual_workers();
  const bool own_alone = AllReduces(config);
  if (!own_alone && config.fault().on_worker_loss() != FaultConfig::SHRINK) {
    return LiveSet(virtual_workers);
  }
  std::vector<bool> live(virtual_workers, false);
  for (const WorkerAssignment& worker : view.workers()) {
    if (own_alone && worker.server_node_id() != server_node_id) continue;
    for (const uint32_t virtual_worker : worker.virtual_workers()) {
      if (virtual_worker < virtual_workers) live[virtual_worker] = true;
    }
  }
  return LiveSet(std::move(live));
}

}  // namespace tug
