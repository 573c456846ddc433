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

TEST(LossCurveSvg, DrawsBothSeriesAndEscapesTheTitle) {
  const std::string svg = LossCurveSvg(Curve(1000));
  EXPECT_THAT(svg, HasSubstr("bible &lt;char&gt; &amp; more"));
  EXPECT_THAT(svg, HasSubstr("validation, last"));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(LossCurveSvg, MarksChangedSettings) {
  LossCurve curve = Curve(1000);
  curve.settings = {{250, {"train.steps 500 -> 1000", "optimizer.learning_rate 0.1 -> 0.01"}},
                    {750, {"data.path \"" + std::string(60, 'a') + "\" -> \"b\""}}};
  const std::string svg = LossCurveSvg(curve);
  EXPECT_THAT(svg,
              HasSubstr(R"(<line x1="257.0" y1="428.0" x2="257.0" y2="48.0" class="settings")"));
  EXPECT_THAT(svg, HasSubstr("x=\"262.0\" y=\"63.0\" text-anchor=\"start\" class=\"small\">"
                             "train.steps 500 -&gt; 1000, +1 more<title>settings changed at step "
                             "250:\ntrain.steps 500 -&gt; 1000\noptimizer.learning_rate"));
  EXPECT_THAT(svg, HasSubstr("x=\"638.0\" y=\"78.0\" text-anchor=\"end\" class=\"small\">"
                             "data.path &quot;" +
                             std::string(34, 'a') + "...<title>"));
  EXPECT_THAT(LossCurveSvg({.settings = curve.settings}), Not(HasSubstr("train.steps")));
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
