#include "server/view_live_set.h"

#include <utility>
#include <vector>

namespace tug {

LiveSet LiveSetOf(const View& view, const JobConfig& config) {
  const uint32_t virtual_workers = config.cluster().virtual_workers();
  if (config.fault().on_worker_loss() != FaultConfig::SHRINK) return LiveSet(virtual_workers);
  std::vector<bool> live(virtual_workers, false);
  for (const WorkerAssignment& worker : view.workers()) {
    for (const uint32_t virtual_worker : worker.virtual_workers()) {
      if (virtual_worker < virtual_workers) live[virtual_worker] = true;
    }
  }
  return LiveSet(std::move(live));
}

}  // namespace tug
