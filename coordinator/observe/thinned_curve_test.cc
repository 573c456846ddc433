// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/thinned_curve.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using Added = ThinnedCurve::Added;

ThinnedCurve::Point Step(uint64_t step, double loss) {
  return {.step = step,
          .at_seconds = 0.5 * static_cast<double>(step),
          .loss = loss,
          .seconds = 2,
          .tokens = 10};
}

TEST(ThinnedCurve, KeepsEveryStepOfAShortJob) {
  ThinnedCurve curve(8);
  for (uint64_t step = 1; step <= 7; ++step) {
    EXPECT_EQ(curve.Add(Step(step, 1.0 / static_cast<double>(step))), Added::kNewPoint);
  }
  ASSERT_EQ(curve.points().size(), 7u);
  EXPECT_EQ(curve.points()[2], Step(3, 1.0 / 3));
  EXPECT_FALSE(curve.open().has_value());
}

TEST(ThinnedCurve, IsBoundedAndEveryPointIsTheMeanOfItsSteps) {
  ThinnedCurve curve(8);
  for (uint64_t step = 1; step <= 100'003; ++step) {
    curve.Add(Step(step, static_cast<double>(step)));
    ASSERT_LT(curve.points().size(), 8u);
  }
  ASSERT_GE(curve.points().size(), 4u);
  uint64_t before = 0;
  for (const ThinnedCurve::Point& point : curve.points()) {
    EXPECT_EQ(point.step, before + curve.stride());
    EXPECT_DOUBLE_EQ(point.loss, static_cast<double>(before + 1 + point.step) / 2);
    EXPECT_DOUBLE_EQ(point.seconds, 2);
    EXPECT_DOUBLE_EQ(point.tokens, 10);
    before = point.step;
  }
  EXPECT_EQ(curve.open()->step, 100'003u);
}

TEST(ThinnedCurve, LossesThatAreNotFiniteAreNoPartOfAMean) {
  ThinnedCurve curve(2);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  curve.Add(Step(1, nan));
  EXPECT_TRUE(std::isnan(curve.points()[0].loss));
  EXPECT_EQ(curve.Add(Step(2, 3)), Added::kOthers);
  EXPECT_EQ(curve.points()[0].loss, 3);
  curve.Add(Step(3, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(curve.open()->loss));
}

TEST(ThinnedCurve, ForgetsStepsThatAreTakenAgain) {
  ThinnedCurve curve(8);
  for (uint64_t step = 1; step <= 5; ++step) curve.Add(Step(step, 1));
  EXPECT_EQ(curve.Add(Step(3, 2)), Added::kOthers);
  ASSERT_EQ(curve.points().size(), 3u);
  EXPECT_EQ(curve.points()[2].loss, 2);
}

}  // namespace
}  // namespace tug
