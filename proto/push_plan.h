#ifndef TUG_PROTO_PUSH_PLAN_H_
#define TUG_PROTO_PUSH_PLAN_H_

#include "proto/sync_mode.h"

namespace tug {

// How a gradient gets from a virtual worker into an update: who does what, a property a row. A
// function of the job's configuration, so that workers, lanes and whoever computes a run again
// agree.
struct PushPlan {
  // What a lane clips sums by. OFF also where an update is of one virtual worker's gradient alone,
  // which is clipped where it is made.
  OptimizerConfig::Clip lane_clip = OptimizerConfig::OFF;
  // The worker changes gradients before it pushes them: it clips them, or takes local steps, which
  // make the weights that the difference pushed is of.
  bool worker_clips = false;
  // The worker clips by a norm over all blocks: pushes wait for the end of the backward pass.
  bool worker_holds = false;
  // Weights are bound as bf16, as they are pulled: the model computes in bf16, and nothing is done
  // with them before.
  bool binds_bf16 = false;
  // A worker that computes on a GPU encodes there: with codecs that there are kernels for, unless
  // the host changes gradients before they are pushed, or a push may be dropped, which then goes
  // with the next (sync.policy BACKUP). Elsewhere the host encodes.
  bool gpu_encodes = false;
};

// `config`: all fields filled.
PushPlan PushPlanOf(const JobConfig& config);

// PushPlan::lane_clip.
OptimizerConfig::Clip LaneClipOf(const SyncConfig& sync, const OptimizerConfig& optimizer);

// Whether decoding gives the gradient on average: such a codec takes no error feedback.
constexpr bool IsUnbiased(PushCodecConfig::CodecCase codec) {
  return codec == PushCodecConfig::kQsgd || codec == PushCodecConfig::kTernGrad ||
         codec == PushCodecConfig::kNatural;
}
// Whether there are kernels for it: bytes depend on the elements alone, and nothing is kept but
// residuals.
constexpr bool HasGpuKernels(PushCodecConfig::CodecCase codec) {
  return codec == PushCodecConfig::kInt8 || codec == PushCodecConfig::kOneBit ||
         codec == PushCodecConfig::kTopK;
}

}  // namespace tug

#endif  // TUG_PROTO_PUSH_PLAN_H_
