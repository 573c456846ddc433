// SPDX-License-Identifier: Apache-2.0
#include "config/push_plan.h"

namespace tug {
namespace {

// Whether an update contains the gradient of a single virtual worker.
bool WorkersClip(const SyncConfig& sync) {
  return SyncModeOf(sync.policy()).update_per_push || sync.local_steps() > 1;
}

}  // namespace

OptimizerConfig::Clip LaneClipOf(const SyncConfig& sync, const OptimizerConfig& optimizer) {
  return WorkersClip(sync) ? OptimizerConfig::OFF : optimizer.clip();
}

PushPlan PushPlanOf(const JobConfig& config) {
  const SyncConfig& sync = config.sync();
  const OptimizerConfig::Clip clip = config.optimizer().clip();
  const bool local_steps = sync.local_steps() > 1;
  PushPlan plan;
  plan.lane_clip = LaneClipOf(sync, config.optimizer());
  plan.worker_clips = WorkersClip(sync) && (clip != OptimizerConfig::OFF || local_steps);
  plan.worker_holds = plan.worker_clips && clip == OptimizerConfig::GLOBAL;
  plan.binds_bf16 = config.train().precision() == TrainConfig::BF16 &&
                    config.comm().pull_format() == CommConfig::BF16 && !local_steps;
  plan.gpu_encodes = HasGpuKernels(config.comm().push_codec().codec_case()) && !plan.worker_clips &&
                     !SyncModeOf(sync.policy()).skips_steps;
  return plan;
}

}  // namespace tug
