#ifndef TUG_SERVER_VIEW_LIVE_SET_H_
#define TUG_SERVER_VIEW_LIVE_SET_H_

#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "server/live_set.h"

namespace tug {

// The virtual workers that lanes wait for in a view: with fault.on_worker_loss SHRINK those that
// somebody carries, else all.
LiveSet LiveSetOf(const View& view, const JobConfig& config);

}  // namespace tug

#endif  // TUG_SERVER_VIEW_LIVE_SET_H_
