// SPDX-License-Identifier: Apache-2.0
#include "scheduler/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace tug {
namespace {

constexpr double kTrend = GaussianProcess::kOffset * GaussianProcess::kOffset;

TEST(GaussianProcess, IsSureOfOneObservationUpToItsNoise) {
  const GaussianProcess process({{{0, 0}, 1.5}}, {.signal = 2, .length = 1, .noise = 0.5});
  // One number: prior variance 4 + 100, noise 0.25.
  const double all = 4 + kTrend + 0.25;
  const GpPrediction at = process.At({0, 0});
  EXPECT_NEAR(at.mean, (4 + kTrend) / all * 1.5, 1e-12);
  EXPECT_NEAR(at.deviation, std::sqrt((4 + kTrend) * 0.25 / all), 1e-9);
  EXPECT_NEAR(process.log_marginal_likelihood(),
              -1.5 * 1.5 / (2 * all) - std::log(2 * std::numbers::pi * all) / 2, 1e-12);
}

TEST(GaussianProcess, FallsOffAsMatern52WithDistance) {
  const GaussianProcess process({{{0, 0}, 0.0}}, {.signal = 1, .length = 2, .noise = 1e-6});
  // At distance `length`: (1 + sqrt 5 + 5/3) exp(-sqrt 5) = 0.523994 of the variance is shared.
  const double shared = 0.5239941088318203 + kTrend;
  const double variance = 1 + kTrend - shared * shared / (1 + kTrend);
  EXPECT_NEAR(process.At({2, 0}).deviation, std::sqrt(variance), 1e-6);
  EXPECT_NEAR(process.At({0, -2}).deviation, std::sqrt(variance), 1e-6);
  EXPECT_NEAR(process.At({1.2, 1.6}).deviation, std::sqrt(variance), 1e-6);
}

TEST(GaussianProcess, WeighsTwoObservationsByTheirMeasurements) {
  // At one point: 1.0 measured once, 2.0 three times. The trend is almost free, so the mean is the
  // weighted one, and equals that of one observation with four measurements.
  const GpParameters parameters{.signal = 1, .length = 1, .noise = 0.5};
  const GaussianProcess two({{{0, 0}, 1.0, 1}, {{0, 0}, 2.0, 3}}, parameters);
  const GaussianProcess one({{{0, 0}, 1.75, 4}}, parameters);
  EXPECT_NEAR(two.At({0, 0}).mean, 1.75, 2e-3);
  EXPECT_NEAR(two.At({0, 0}).mean, one.At({0, 0}).mean, 1e-9);
  EXPECT_NEAR(two.At({0, 0}).deviation, one.At({0, 0}).deviation, 1e-9);
  EXPECT_NEAR(two.At({1, 1}).mean, one.At({1, 1}).mean, 1e-9);
}

TEST(GaussianProcess, SolvesTwoPlacesAsByHand) {
  const GpParameters parameters{.signal = 0.5, .length = 1, .noise = 0.1};
  const GaussianProcess process({{{0, 0, 0.3}, 1.0}, {{1, 0, -0.3}, 0.2}}, parameters);
  const double slope = GaussianProcess::kSlope * GaussianProcess::kSlope;
  const double near = 0.25 * 0.5239941088318203;
  const double a = 0.25 + kTrend + slope * 0.09 + 0.01;  // diagonal
  const double b = near + kTrend - slope * 0.09;         // off-diagonal
  const double determinant = a * a - b * b;
  const double r0 = 1.0 - 0.3, r1 = 0.2 + 0.3;  // values - expected values
  const double w0 = (a * r0 - b * r1) / determinant;
  const double w1 = (a * r1 - b * r0) / determinant;
  EXPECT_NEAR(process.At({0, 0, 0.3}).mean, 0.3 + (a - 0.01) * w0 + b * w1, 1e-9);
  EXPECT_NEAR(
      process.log_marginal_likelihood(),
      -0.5 * (r0 * w0 + r1 * w1) - 0.5 * std::log(determinant) - std::log(2 * std::numbers::pi),
      1e-9);
}

std::vector<GpObservation> Line(double scale, double offset) {
  std::vector<GpObservation> observations;
  for (int i = 0; i < 6; ++i) {
    const double expected = 0.2 * i - 0.5;
    observations.push_back({{double(3 * i), 0, expected}, scale * expected + offset});
  }
  return observations;
}

TEST(GaussianProcess, ExpectationOfRightShapeHelpsAtAnyHeightAndScale) {
  for (const double scale : {0.6, 1.0, 1.6}) {
    for (const double offset : {-4.0, 0.0, 6.0}) {
      const GaussianProcess process = GaussianProcess::Fit(Line(scale, offset), 0.01);
      const GpPrediction far = process.At({30, 0, 1.0});
      EXPECT_NEAR(far.mean, scale * 1.0 + offset, 0.1) << scale << " " << offset;
      const GpPrediction blind = process.At({30, 0, 0});
      EXPECT_NEAR(blind.mean, offset, 0.1);
    }
  }
}

TEST(GaussianProcess, FitsTheNoiseThatIsLikelyOfWhatItSees) {
  std::vector<GpObservation> smooth, rough;
  for (int i = 0; i < 20; ++i) {
    const double value = std::sin(i / 6.0);
    smooth.push_back({{i * 1.0, 0}, value});
    rough.push_back({{i * 1.0, 0}, value + (i % 2 == 0 ? 0.08 : -0.08)});
  }
  EXPECT_LE(GaussianProcess::Fit(smooth, 0.02).parameters().noise, 0.02);
  EXPECT_GE(GaussianProcess::Fit(rough, 0.02).parameters().noise, 0.04);
}

TEST(ExpectedImprovement, IsThatOfANormalValueBelowTheBest) {
  // gain Phi(z) + deviation phi(z)
  EXPECT_NEAR(ExpectedImprovement({.mean = 1, .deviation = 2}, 1), 2 * 0.3989422804014327, 1e-12);
  EXPECT_NEAR(ExpectedImprovement({.mean = 0, .deviation = 1}, 1), 1.0833154705876864, 1e-12);
  EXPECT_NEAR(ExpectedImprovement({.mean = 1, .deviation = 1}, 0), 0.0833154705876864, 1e-12);
  EXPECT_EQ(ExpectedImprovement({.mean = 1, .deviation = 0}, 3), 2);
  EXPECT_EQ(ExpectedImprovement({.mean = 3, .deviation = 0}, 1), 0);
}

}  // namespace
}  // namespace tug
