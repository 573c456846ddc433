#ifndef TUG_EXCHANGE_WORKER_PLACE_H_
#define TUG_EXCHANGE_WORKER_PLACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "exchange/requests.h"
#include "proto/control.pb.h"

namespace tug {

// What a worker has in a view: its virtual workers, ascending, and of each the clock where it goes
// on. Empty if the view has nothing for it.
struct WorkerPlace {
  std::vector<uint32_t> virtual_workers;
  std::vector<uint64_t> start_clocks;
};
WorkerPlace PlaceOf(const View& view, uint32_t node_id);

// The first contiguous run of these, ascending. REQUIRES: not empty.
VirtualWorkerRun FirstRun(std::span<const uint32_t> virtual_workers);

}  // namespace tug

#endif  // TUG_EXCHANGE_WORKER_PLACE_H_
