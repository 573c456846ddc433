// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/loss_curve.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LossCurve Curve(uint64_t steps) {
  LossCurve curve;
  curve.title = "bible <char> & more";
  for (uint64_t step = 1; step <= steps; ++step) {
    const double noise = std::sin(static_cast<double>(step * 7919)) * 0.1;
    curve.training.push_back(
        {step, 1.5 + 2.7 * std::exp(-static_cast<double>(step) / 300.0) + noise});
    if (step % 250 == 0) {
      curve.validation.push_back({step, 1.6 + 2.6 * std::exp(-static_cast<double>(step) / 300.0)});
    }
  }
  return curve;
}

TEST(NiceTicks, AreRoundAndInside) {
  EXPECT_EQ(NiceTicks(0, 2000, 8), (std::vector<double>{0, 500, 1000, 1500, 2000}));
  const std::vector<double> ticks = NiceTicks(1.37, 4.21, 7);
  ASSERT_EQ(ticks.size(), 6u);
  EXPECT_NEAR(ticks.front(), 1.5, 1e-12);
  EXPECT_NEAR(ticks.back(), 4.0, 1e-12);
}

TEST(NiceTicks, HoldWhenThereIsNoRange) {
  EXPECT_EQ(NiceTicks(3, 3, 5), (std::vector<double>{3}));
  EXPECT_TRUE(NiceTicks(0, INFINITY, 5).empty());
  EXPECT_TRUE(NiceTicks(2, 1, 5).empty());
}

TEST(LossCurveSvg, DrawsBothSeriesAndEscapesTheTitle) {
  const std::string svg = LossCurveSvg(Curve(1000));
  EXPECT_THAT(svg, HasSubstr("bible &lt;char&gt; &amp; more"));
  EXPECT_THAT(svg, HasSubstr("validation, last"));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(LossCurveSvg, StaysSmallAndFiniteForLongAndNonfiniteRuns) {
  LossCurve curve = Curve(200000);
  curve.training[5].loss = std::numeric_limits<double>::quiet_NaN();
  curve.training[6].loss = std::numeric_limits<double>::infinity();
  const std::string svg = LossCurveSvg(curve);
  EXPECT_LT(svg.size(), 200000u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  for (const uint64_t steps : {0u, 1u, 2u, 3u}) {
    EXPECT_THAT(LossCurveSvg(Curve(steps)), Not(HasSubstr("nan"))) << steps;
  }
}

}  // namespace
}  // namespace tug
