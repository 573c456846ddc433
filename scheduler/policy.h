#ifndef TUG_SCHEDULER_POLICY_H_
#define TUG_SCHEDULER_POLICY_H_

#include <array>

#include "base/check.h"
#include "proto/job.pb.h"

namespace tug {

// In what order partitions leave, all under the same byte credit (credit_queue.h). None of it
// changes a bit of the result. Three blocks of two partitions, completed in the order 2, 1, 0;
// credit for one partition, and blocks 1 and 0 complete while 2a is on its way:
//
//   FIFO            2a 2b 1a 1b 0a 0b
//   PRIORITY        2a 2b 0a 0b 1a 1b
//   BYTESCHEDULER   2a 0a 0b 1a 1b 2b
struct SchedulingPolicy {
  CommConfig::Scheduler name;
  // A block that the next forward pass needs earlier goes first; else the one that came first.
  bool by_priority;
  // A block that has begun leaves to the last partition that waits, before another begins.
  bool whole_blocks;
  const char* source;
};

inline constexpr std::array<SchedulingPolicy, 3> kSchedulingPolicies = {{
    {CommConfig::FIFO, false, false, "wait-free back-propagation: Zhang et al. 2017 (Poseidon)"},
    {CommConfig::PRIORITY, true, true, "whole tensors by priority: Hashemi et al. 2019 (TicTac)"},
    {CommConfig::BYTESCHEDULER, true, false, "Peng et al. 2019 (ByteScheduler), section 4.2"},
}};

// The policy of a scheduler; AUTO tunes BYTESCHEDULER (tuner.h).
// REQUIRES: there is one of that name (in a complete configuration there is).
inline const SchedulingPolicy& PolicyOf(CommConfig::Scheduler name) {
  if (name == CommConfig::AUTO) name = CommConfig::BYTESCHEDULER;
  for (const SchedulingPolicy& policy : kSchedulingPolicies) {
    if (policy.name == name) return policy;
  }
  TUG_CHECK(false) << "no scheduling policy has number " << static_cast<int>(name);
  return kSchedulingPolicies.back();
}

}  // namespace tug

#endif  // TUG_SCHEDULER_POLICY_H_
