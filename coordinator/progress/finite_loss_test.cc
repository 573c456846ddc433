// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/finite_loss.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// State after steps 1, 2, ... with these losses.
FiniteLoss After(uint32_t most, const std::vector<double>& losses) {
  TrainConfig config;
  config.set_max_nonfinite_steps(most);
  FiniteLoss watched(config);
  for (size_t i = 0; i < losses.size(); ++i) {
    StepMetrics metrics;
    metrics.step = i + 1;
    metrics.loss = losses[i];
    metrics.targets = 4;
    watched.Add(metrics);
  }
  return watched;
}

TEST(FiniteLoss, IsExceededAfterSoManyStepsInARow) {
  EXPECT_FALSE(After(3, {2, kNan, kInfinity}).exceeded());
  EXPECT_TRUE(After(3, {2, kNan, kInfinity, -kInfinity}).exceeded());
  EXPECT_FALSE(After(3, {kNan, kNan, 2, kNan, kNan}).exceeded()) << "a finite one starts anew";
  EXPECT_FALSE(After(0, {kNan, kNan, kNan}).exceeded()) << "0: never";
  EXPECT_TRUE(After(2, {kNan, kNan, 2, 2}).exceeded()) << "it stays so";
}

TEST(FiniteLoss, KnowsWhetherAnyStepHadOne) {
  EXPECT_TRUE(After(10, {kNan}).never_finite());
  EXPECT_FALSE(After(10, {}).never_finite());
  EXPECT_FALSE(After(10, {2, kNan}).never_finite());
  EXPECT_FALSE(After(0, {kNan}).never_finite());
}

TEST(FiniteLoss, AStepWithoutTargetsSaysNothing) {
  TrainConfig config;
  config.set_max_nonfinite_steps(2);
  FiniteLoss watched(config);
  StepMetrics metrics;
  metrics.loss = kNan;
  for (metrics.step = 1; metrics.step <= 5; ++metrics.step) watched.Add(metrics);
  EXPECT_FALSE(watched.exceeded());
  EXPECT_FALSE(watched.never_finite());
  metrics.targets = 1;
  watched.Add(metrics);
  metrics.targets = 0;
  ++metrics.step;
  watched.Add(metrics);
  metrics.targets = 1;
  ++metrics.step;
  watched.Add(metrics);
  EXPECT_TRUE(watched.exceeded()) << "steps 6 and 8 are in a row";
}

TEST(FiniteLoss, NamesTheFirstStepAndARemedy) {
  const std::string diverged = After(2, {2, kNan, 2, kNan, kNan, kNan}).Error();
  EXPECT_THAT(diverged, HasSubstr("step 4 was the first of 2 steps in a row"));
  EXPECT_THAT(diverged, HasSubstr("optimizer.learning_rate"));
  EXPECT_THAT(After(9, {kNan, kNan}).Error(), HasSubstr("train.init_from"));
}

}  // namespace
}  // namespace tug
