#ifndef TUG_SERVER_VIEW_LIVE_SET_H_
#define TUG_SERVER_VIEW_LIVE_SET_H_

#include <cstdint>

#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "server/live_set.h"

namespace tug {

// The virtual workers that a server's lanes wait for in a view: with `exchange: ALL_REDUCE` those
// of the worker that it is beside; else with fault.on_worker_loss SHRINK those that somebody
// carries, and all otherwise.
LiveSet LiveSetOf(const View& view, const JobConfig& config, uint32_t server_node_id);

}  // namespace tug

#endif  // TUG_SERVER_VIEW_LIVE_SET_H_
