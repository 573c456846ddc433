// SPDX-License-Identifier: Apache-2.0
#include "config/push_plan.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

constexpr OptimizerConfig::Clip kClips[] = {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK,
                                            OptimizerConfig::GLOBAL};

TEST(PushPlan, EveryGradientIsClippedByWorkersOrByLanes) {
  for (const SyncMode& mode : kSyncModes) {
    for (const auto clip : kClips) {
      JobConfig config;
      config.mutable_sync()->set_policy(mode.policy);
      config.mutable_optimizer()->set_clip(clip);
      const PushPlan plan = PushPlanOf(config);
      EXPECT_EQ(plan.worker_clips || plan.lane_clip != OptimizerConfig::OFF,
                clip != OptimizerConfig::OFF);
      EXPECT_FALSE(plan.worker_clips && plan.lane_clip != OptimizerConfig::OFF);
      EXPECT_EQ(plan.worker_holds, plan.worker_clips && clip == OptimizerConfig::GLOBAL);
    }
  }
}

TEST(PushPlan, WorkersClipWithLocalStepsForAnyClipping) {
  JobConfig config;
  config.mutable_sync()->set_local_steps(2);
  for (const auto clip : kClips) {
    config.mutable_optimizer()->set_clip(clip);
    EXPECT_TRUE(PushPlanOf(config).worker_clips);
    EXPECT_EQ(PushPlanOf(config).lane_clip, OptimizerConfig::OFF);
  }
}

TEST(PushPlan, TheGpuEncodesWhereItHasAllThatAPushIsMadeOf) {
  JobConfig config;
  EXPECT_FALSE(PushPlanOf(config).gpu_encodes) << "there is no codec";
  config.mutable_comm()->mutable_push_codec()->mutable_int8();
  EXPECT_TRUE(PushPlanOf(config).gpu_encodes);
  config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  EXPECT_FALSE(PushPlanOf(config).gpu_encodes);
  config.mutable_sync()->set_policy(SyncConfig::ASP);
  config.mutable_optimizer()->set_clip(OptimizerConfig::GLOBAL);
  EXPECT_FALSE(PushPlanOf(config).gpu_encodes);
  config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  EXPECT_TRUE(PushPlanOf(config).gpu_encodes);
  config.mutable_comm()->mutable_push_codec()->mutable_dgc();
  EXPECT_FALSE(PushPlanOf(config).gpu_encodes) << "there are no kernels";
}

}  // namespace
}  // namespace tug
