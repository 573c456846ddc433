// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PUSHES_PUSH_STEP_H_
#define TUG_SERVER_PUSHES_PUSH_STEP_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/sgd.h"
#include "optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "server/sync/staleness.h"

namespace tug {

// A push that is an update by itself (SSP, ASP), for one segment.
struct PushedUpdate {
  uint64_t version = 0;    // before the update
  uint64_t staleness = 0;  // updates since the weights that the gradient was computed with
  uint64_t token_count = 1;
  bool weight_decay = true;
};

// Used by lanes and by the replay of a recorded run. Pure, thread-safe.

// Optimizer step of a push: every push counts for its t, and S of them are a step of the schedule.
inline UpdateStep StepOfPush(const SyncConfig& sync, uint32_t virtual_workers,
                             const PushedUpdate& push) {
  return {.t = push.version,
          .position = static_cast<double>(push.version) / virtual_workers,
          .step_scale = StalenessScale(sync.staleness_scaling(), push.staleness),
          .weight_decay = push.weight_decay,
          .gradient_scale = static_cast<float>(1.0 / static_cast<double>(push.token_count))};
}

// Whether the gradient needs CompensateDelay.
inline bool WantsCompensation(const SyncConfig& sync, uint64_t staleness) {
  return sync.delay_compensation() != 0 && staleness != 0;
}

// A gradient, the weights `of` that it was computed with, and the `weights` to update; equal
// lengths.
struct DelayedGradient {
  std::span<const float> gradient;
  std::span<const float> of;
  std::span<const float> weights;
};

// Writes the gradient, estimated for `weights` by sync.delay_compensation (kernels/sgd.h), to `out`
// and returns it. The result is scaled: the step's gradient_scale becomes 1.
inline std::span<const float> CompensateDelay(const SyncConfig& sync,
                                              const DelayedGradient& delayed, UpdateStep& step,
                                              std::vector<float>& out) {
  out.resize(delayed.gradient.size());
  kernels::CompensateDelay(static_cast<int64_t>(out.size()),
                           static_cast<float>(sync.delay_compensation()),
                           std::exchange(step.gradient_scale, 1.0f), delayed.gradient.data(),
                           delayed.weights.data(), delayed.of.data(), out.data());
  return out;
}

}  // namespace tug

#endif  // TUG_SERVER_PUSHES_PUSH_STEP_H_
