// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_PUSH_PLAN_H_
#define TUG_CONFIG_PUSH_PLAN_H_

#include "config/sync_mode.h"

namespace tug {

// How a gradient gets from a virtual worker into an update: one field per property. A function of
// the job's configuration, so that workers, lanes and re-executions agree.
struct PushPlan {
  // Clipping that lanes apply to sums. OFF if an update contains the gradient of a single virtual
  // worker, which the worker clips.
  OptimizerConfig::Clip lane_clip = OptimizerConfig::OFF;
  // The worker changes gradients before it pushes them: it clips them, or takes local steps, which
  // produce the weights whose difference is pushed.
  bool worker_clips = false;
  // The worker clips by a norm over all blocks: pushes wait for the end of the backward pass.
  bool worker_holds = false;
  // The model binds weights as bf16, as they are pulled: it computes in bf16, and nothing changes
  // them in between.
  bool binds_bf16 = false;
  // A worker with a GPU encodes on it, if there are kernels for the codec. Not if the host changes
  // gradients before they are pushed, or if a push may be dropped and then be sent with the next
  // one (sync.policy BACKUP): then the host encodes.
  bool gpu_encodes = false;
};

// `config`: all fields filled.
PushPlan PushPlanOf(const JobConfig& config);

// PushPlan::lane_clip.
OptimizerConfig::Clip LaneClipOf(const SyncConfig& sync, const OptimizerConfig& optimizer);

// Whether decoding gives the gradient on average; such a codec needs no error feedback.
constexpr bool IsUnbiased(PushCodecConfig::CodecCase codec) {
  return codec == PushCodecConfig::kQsgd || codec == PushCodecConfig::kTernGrad ||
         codec == PushCodecConfig::kNatural;
}
// Whether there are GPU kernels for the codec: its size depends only on the number of elements, and
// it has no state other than residuals.
constexpr bool HasGpuKernels(PushCodecConfig::CodecCase codec) {
  return codec == PushCodecConfig::kInt8 || codec == PushCodecConfig::kOneBit ||
         codec == PushCodecConfig::kTopK;
}

}  // namespace tug

#endif  // TUG_CONFIG_PUSH_PLAN_H_
