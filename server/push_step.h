#ifndef TUG_SERVER_PUSH_STEP_H_
#define TUG_SERVER_PUSH_STEP_H_

#include <cstdint>

#include "optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "server/staleness.h"

namespace tug {

// A push that is an update by itself (SSP, ASP), as a segment has it.
struct PushedUpdate {
  uint64_t version = 0;    // of the segment before it
  uint64_t staleness = 0;  // versions since that of the weights that the gradient is of
  uint64_t token_count = 1;
  bool weight_decay = true;
};

// How the optimizer takes it: every push counts for its t, and S of them are a step of the
// schedule. For lanes, and for whoever computes a recorded run again. Pure, thread-safe.
inline UpdateStep StepOfPush(const SyncConfig& sync, uint32_t virtual_workers,
                             const PushedUpdate& push) {
  return {.t = push.version,
          .position = static_cast<double>(push.version) / virtual_workers,
          .step_scale = StalenessScale(sync.staleness_scaling(), push.staleness),
          .weight_decay = push.weight_decay,
          .gradient_scale = static_cast<float>(1.0 / static_cast<double>(push.token_count))};
}

}  // namespace tug

#endif  // TUG_SERVER_PUSH_STEP_H_
