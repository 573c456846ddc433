#ifndef TUG_EXCHANGE_WORKER_PLACE_H_
#define TUG_EXCHANGE_WORKER_PLACE_H_

#include <cstdint>
#include <vector>

#include "exchange/requests.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace tug {

// What a worker has in a view: its virtual workers, ascending, and of each the clock where it goes
// on. Empty if the view has nothing for it.
struct WorkerPlace {
  std::vector<uint32_t> virtual_workers;
  std::vector<uint64_t> start_clocks;
};
WorkerPlace PlaceOf(const View& view, uint32_t node_id);

// What an exchange needs to know of them, and of the policy.
void SetSync(const SyncConfig& sync, const WorkerPlace& place, ExchangeOptions& options);

}  // namespace tug

#endif  // TUG_EXCHANGE_WORKER_PLACE_H_
