// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SCHEDULER_POLICY_H_
#define TUG_SCHEDULER_POLICY_H_

#include <array>

#include "base/check.h"
#include "proto/job.pb.h"

namespace tug {

// Order in which partitions leave; all policies share one byte credit (credit_queue.h). Under BSP
// the order does not change the result by a bit. Example: three blocks of two partitions complete
// in the order 2, 1, 0; the credit is one partition; blocks 1 and 0 complete while 2a is in flight:
//
//   FIFO (WFBP)     2a 2b 1a 1b 0a 0b
//   PRIORITY        2a 2b 0a 0b 1a 1b
//   BYTESCHEDULER   2a 0a 0b 1a 1b 2b
struct SchedulingPolicy {
  CommConfig::Scheduler name;
  // The block that the next forward pass needs earliest goes first; otherwise the order of arrival.
  bool by_priority;
  // A begun block sends all its waiting partitions before another block begins.
  bool whole_blocks;
  const char* source;
};

inline constexpr std::array<SchedulingPolicy, 3> kSchedulingPolicies = {{
    {CommConfig::FIFO, false, false, "wait-free back-propagation: Zhang et al. 2017 (Poseidon)"},
    {CommConfig::PRIORITY, true, true, "whole tensors by priority: Hashemi et al. 2019 (TicTac)"},
    {CommConfig::BYTESCHEDULER, true, false, "Peng et al. 2019 (ByteScheduler), section 4.2"},
}};

// Policy of a scheduler; AUTO tunes BYTESCHEDULER (tuner.h). REQUIRES: kSchedulingPolicies has it,
// as in every complete configuration.
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
