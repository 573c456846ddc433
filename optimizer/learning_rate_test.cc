// SPDX-License-Identifier: Apache-2.0
#include "optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kWarmup = 9;
constexpr uint64_t kDecay = 109;
constexpr double kPeak = 1.0;
constexpr double kFloor = 0.1;

OptimizerConfig Config(OptimizerConfig::Schedule schedule) {
  OptimizerConfig config;
  config.set_learning_rate(kPeak);
  config.set_min_learning_rate(kFloor);
  config.set_warmup_steps(kWarmup);
  config.set_decay_steps(kDecay);
  config.set_schedule(schedule);
  return config;
}

struct Point {
  uint64_t step;
  double rate;
};

struct Case {
  OptimizerConfig::Schedule schedule;
  std::vector<Point> points;  // after warm-up
  bool ends_at_floor;         // at decay_steps
};

// Computed by hand from the formulas in learning_rate.h. The last fifth of 109 steps is 21 steps.
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {OptimizerConfig::COSINE, {{34, 0.1 + 0.45 * (1 + std::sqrt(0.5))}, {59, 0.55}}, true},
      {OptimizerConfig::LINEAR, {{10, 0.991}, {59, 0.55}, {108, 0.109}}, true},
      {OptimizerConfig::CONSTANT, {{10, 1.0}, {109, 1.0}, {1000000, 1.0}}, false},
      {OptimizerConfig::INVERSE_SQRT,
       {{39, 0.5}, {249, 0.2}, {999, 0.1}, {1000, 0.1}, {1000000, 0.1}},
       false},
      {OptimizerConfig::STABLE_DECAY,
       {{10, 1.0}, {88, 1.0}, {95, 0.7}, {102, 0.4}, {108, 0.1 + 0.9 / 21}},
       true},
  };
  return cases;
}

TEST(LearningRate, IsThatOfTheFormulaAtPointsWorkedOutByHand) {
  for (const Case& one : Cases()) {
    for (const Point& point : one.points) {
      EXPECT_NEAR(LearningRateAt(Config(one.schedule), point.step), point.rate, 1e-12)
          << OptimizerConfig::Schedule_Name(one.schedule) << " at " << point.step;
    }
  }
}

TEST(LearningRate, HasACaseOfEverySchedule) {
  EXPECT_EQ(Cases().size(), static_cast<size_t>(OptimizerConfig::Schedule_MAX));
}

TEST(LearningRate, RisesLinearlyDuringWarmupToThePeakInEverySchedule) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(OptimizerConfig::Schedule_Name(one.schedule));
    const OptimizerConfig config = Config(one.schedule);
    EXPECT_DOUBLE_EQ(LearningRateAt(config, 0), 0.1);
    EXPECT_DOUBLE_EQ(LearningRateAt(config, 4), 0.5);
    EXPECT_DOUBLE_EQ(LearningRateAt(config, 8), 0.9);
    EXPECT_DOUBLE_EQ(LearningRateAt(config, kWarmup), kPeak);
  }
}

TEST(LearningRate, NeverRisesOrJumpsAfterWarmupNorFallsBelowTheFloor) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(OptimizerConfig::Schedule_Name(one.schedule));
    const OptimizerConfig config = Config(one.schedule);
    for (uint64_t step = kWarmup + 1; step < 2000; ++step) {
      const double before = LearningRateAt(config, step - 1);
      const double rate = LearningRateAt(config, step);
      ASSERT_LE(rate, before) << step;
      ASSERT_GE(rate, kFloor) << step;
      ASSERT_LT(before - rate, 0.05) << step;
    }
    if (!one.ends_at_floor) continue;
    for (const uint64_t step : {kDecay, kDecay + 1, uint64_t{1000000}}) {
      EXPECT_DOUBLE_EQ(LearningRateAt(config, step), kFloor) << step;
    }
  }
}

TEST(LearningRate, LiesBetweenThoseOfTheStepsAroundIt) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(OptimizerConfig::Schedule_Name(one.schedule));
    const OptimizerConfig config = Config(one.schedule);
    for (uint64_t step = 0; step < 300; ++step) {
      const double here = LearningRateAt(config, static_cast<double>(step));
      const double next = LearningRateAt(config, static_cast<double>(step + 1));
      double last = here;
      for (const double part : {0.25, 0.5, 0.75}) {
        const double rate = LearningRateAt(config, static_cast<double>(step) + part);
        ASSERT_GE(rate, std::min(here, next)) << step << " + " << part;
        ASSERT_LE(rate, std::max(here, next)) << step << " + " << part;
        ASSERT_LE(std::abs(rate - last), std::abs(here - next) + 1e-12) << step;
        last = rate;
      }
    }
  }
}

TEST(LearningRate, NeedsNoWarmup) {
  for (const Case& one : Cases()) {
    OptimizerConfig config = Config(one.schedule);
    config.set_warmup_steps(0);
    EXPECT_DOUBLE_EQ(LearningRateAt(config, 0), kPeak)
        << OptimizerConfig::Schedule_Name(one.schedule);
  }
}

TEST(LearningRate, StaysStableUntilWarmupEndsWhereThatIsInTheLastFifth) {
  OptimizerConfig config = Config(OptimizerConfig::STABLE_DECAY);
  config.set_warmup_steps(99);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 98), 0.99);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 99), kPeak);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 104), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 109), kFloor);
}

}  // namespace
}  // namespace tug
