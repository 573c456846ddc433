// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_WORKER_PLACE_H_
#define TUG_BLOCKS_WORKER_PLACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "blocks/requests.h"
#include "proto/control.pb.h"

namespace tug {

// Assignment of a worker in a view: its virtual workers, ascending, and the clock at which each
// continues. Empty if the view has none for it.
struct WorkerPlace {
  std::vector<uint32_t> virtual_workers;
  std::vector<uint64_t> start_clocks;
};
WorkerPlace PlaceOf(const View& view, uint32_t node_id);

// First contiguous run of `virtual_workers`, which are ascending. REQUIRES: not empty.
VirtualWorkerRun FirstRun(std::span<const uint32_t> virtual_workers);

}  // namespace tug

#endif  // TUG_BLOCKS_WORKER_PLACE_H_
