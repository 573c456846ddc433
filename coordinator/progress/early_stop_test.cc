// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/early_stop.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

EvalMetrics Eval(uint64_t version, double loss, bool final = false) {
  EvalMetrics eval;
  eval.version = version;
  eval.loss = loss;
  eval.final = final;
  return eval;
}

// Version at which training ends; 0: never.
uint64_t EndsAt(uint32_t patience, double min_improvement, const std::vector<double>& losses) {
  TrainConfig config;
  config.set_patience(patience);
  config.set_min_improvement(min_improvement);
  EarlyStop stop(config);
  for (size_t i = 0; i < losses.size(); ++i) {
    if (stop.Add(Eval(i + 1, losses[i]))) return i + 1;
  }
  return 0;
}

TEST(EarlyStop, EndsAfterSoManyEvaluationsWithoutImprovement) {
  EXPECT_EQ(EndsAt(2, 0, {5, 4, 4.5, 4.2}), 4u);
  EXPECT_EQ(EndsAt(2, 0, {5, 4, 4.5, 3.9, 4}), 0u) << "an improvement starts the count anew";
  EXPECT_EQ(EndsAt(1, 0, {5, 5}), 2u) << "equal is no improvement";
  EXPECT_EQ(EndsAt(0, 0, {5, 6, 7, 8, 9}), 0u) << "0: never";
}

TEST(EarlyStop, SmallImprovementsDoNotCountButAddUp) {
  EXPECT_EQ(EndsAt(2, 0.5, {5, 4.9, 4.8}), 3u);
  EXPECT_EQ(EndsAt(3, 0.5, {5, 4.7, 4.4, 4.1, 3.8}), 0u) << "against 5, then against 4.4";
}

TEST(EarlyStop, NonfiniteLossIsNeitherImprovementNorBest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(EndsAt(2, 0, {nan, nan}), 2u);
  EXPECT_EQ(EndsAt(2, 0, {5, nan, nan}), 3u);
  EXPECT_EQ(EndsAt(2, 0, {nan, 5, 4}), 0u);
  EarlyStop stop{TrainConfig()};
  stop.Add(Eval(1, nan));
  EXPECT_FALSE(stop.best().has_value());
}

TEST(EarlyStop, TheLastEvaluationMayBeTheBestButNeverEndsTheJob) {
  TrainConfig config;
  config.set_patience(1);
  EarlyStop stop(config);
  EXPECT_FALSE(stop.Add(Eval(10, 3)));
  EXPECT_FALSE(stop.Add(Eval(20, 4, true)));
  EXPECT_EQ(stop.best()->version, 10u);
  EXPECT_FALSE(stop.Add(Eval(30, 2, true)));
  EXPECT_EQ(stop.best()->version, 30u);
  EXPECT_EQ(stop.without_improvement(), 0u);
}

TEST(EarlyStop, EarliestOfEqualLossesIsBest) {
  EarlyStop stop{TrainConfig()};
  stop.Add(Eval(1, 3));
  stop.Add(Eval(2, 3));
  EXPECT_EQ(stop.best()->version, 1u);
}

}  // namespace
}  // namespace tug
