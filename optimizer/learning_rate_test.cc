#include "optimizer/learning_rate.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

OptimizerConfig Config() {
  OptimizerConfig config;
  config.set_learning_rate(1.0);
  config.set_min_learning_rate(0.1);
  config.set_warmup_steps(9);
  config.set_decay_steps(109);
  return config;
}

TEST(LearningRate, RisesLinearlyDuringWarmup) {
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 0), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 8), 0.9);
}

TEST(LearningRate, FollowsHalfACosineThenStaysAtTheFloor) {
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 9), 1.0);
  EXPECT_NEAR(LearningRateAt(Config(), 59), 0.55, 1e-12);
  EXPECT_NEAR(LearningRateAt(Config(), 108), 0.1, 1e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 109), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(Config(), 1000000), 0.1);
}

}  // namespace
}  // namespace tug
