// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/thinned_curve.h"

#include <cmath>
#include <limits>

namespace tug {
namespace {

// Mean of two points of equally many steps; ignores NaN.
double MeanLoss(double a, double b) {
  if (std::isnan(a)) return b;
  return std::isnan(b) ? a : (a + b) / 2;
}

}  // namespace

ThinnedCurve::Added ThinnedCurve::Add(const Point& step) {
  bool went_back = false;
  if (open_.steps > 0 && step.step <= open_.last.step) open_ = {};
  while (!points_.empty() && step.step <= points_.back().step) {
    points_.pop_back();
    went_back = true;
  }
  open_.last = step;
  ++open_.steps;
  if (std::isfinite(step.loss)) {
    ++open_.finite;
    open_.loss += step.loss;
  }
  open_.seconds += step.seconds;
  open_.tokens += step.tokens;
  if (open_.steps < stride_) return went_back ? Added::kOthers : Added::kInPoint;
  points_.push_back(*open());
  open_ = {};
  if (points_.size() == max_points_) {
    Halve();
    return Added::kOthers;
  }
  return went_back ? Added::kOthers : Added::kNewPoint;
}

std::optional<ThinnedCurve::Point> ThinnedCurve::open() const {
  if (open_.steps == 0) return std::nullopt;
  const auto steps = static_cast<double>(open_.steps);
  Point mean = open_.last;
  mean.loss = open_.finite == 0 ? std::numeric_limits<double>::quiet_NaN()
                                : open_.loss / static_cast<double>(open_.finite);
  mean.seconds = open_.seconds / steps;
  mean.tokens = open_.tokens / steps;
  return mean;
}

void ThinnedCurve::Halve() {
  for (size_t i = 0; 2 * i < points_.size(); ++i) {
    const Point& a = points_[2 * i];
    const Point& b = points_[2 * i + 1];
    points_[i] = {.step = b.step,
                  .at_seconds = b.at_seconds,
                  .loss = MeanLoss(a.loss, b.loss),
                  .seconds = (a.seconds + b.seconds) / 2,
                  .tokens = (a.tokens + b.tokens) / 2};
  }
  points_.resize(points_.size() / 2);
  stride_ *= 2;
}

}  // namespace tug
