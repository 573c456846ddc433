// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/median.h"

namespace tug {
namespace {

std::vector<SchedulePoint> WithOwn(std::vector<SchedulePoint> points, const SchedulePoint& own) {
  if (std::find(points.begin(), points.end(), own) == points.end()) points.push_back(own);
  return points;
}

double Octaves(uint64_t bytes) { return std::log2(static_cast<double>(bytes)); }

// Noise of a trial's time, as a fraction of it.
constexpr double kNoiseUnknown = 0.02;
constexpr double kMinNoise = 0.005;

// Positions of the design points, as fractions of the ranges of partition and credit.
constexpr double kDesignPlaces[Tuner::kDesign][2] = {
    {0.35, 0.5}, {0.75, 0.65}, {0.15, 0.2}, {0.2, 0.85}};

}  // namespace

Tuner::Tuner(Options options)
    : options_(std::move(options)),
      points_(WithOwn(options_.points, options_.own)),
      window_(std::max<size_t>(options_.steps_per_trial, kMinDriftSteps)) {
  TUG_CHECK(!options_.points.empty());
  TUG_CHECK(options_.trials >= 1 && options_.steps_per_trial >= 1);
  const auto own = std::find(points_.begin(), points_.end(), options_.own);
  current_ = static_cast<size_t>(own - points_.begin());
  StartAgain();
}

void Tuner::StartAgain() {
  first_ = current_;
  trials_done_ = 0;
  steps_.clear();
  tried_.assign(points_.size(), Tried());
  expected_.clear();
  process_.reset();
  spread_ = 0;
  spread_steps_ = 0;
  settled_.reset();
  newest_.clear();
  settled_median_ = 0;
  drifted_ = 0;
}

void Tuner::SetPrediction(std::vector<double> seconds) {
  TUG_CHECK_EQ(seconds.size(), points_.size());
  double mean = 0;
  for (double& each : seconds) {
    each = std::log(each);
    mean += each / static_cast<double>(points_.size());
  }
  for (double& each : seconds) each -= mean;
  expected_ = std::move(seconds);
  // The next point was chosen without the prediction: choose again.
  if (trials_done_ == 0 || settled_.has_value() || trials_done_ >= options_.trials) return;
  process_.emplace(GaussianProcess::Fit(Observations(), LikelyNoise()));
  if (steps_.empty()) current_ = NextPoint(*process_);
}

GpPoint Tuner::Place(size_t point) const {
  return {.x = Octaves(points_[point].partition_bytes),
          .y = Octaves(points_[point].credit_bytes),
          .expected = expected_.empty() ? 0 : expected_[point]};
}

std::vector<GpObservation> Tuner::Observations() const {
  std::vector<GpObservation> observations;
  for (size_t point = 0; point < points_.size(); ++point) {
    const Tried& tried = tried_[point];
    if (tried.trials == 0) continue;
    observations.push_back({Place(point), tried.sum / tried.trials, tried.trials});
  }
  return observations;
}

// Noise of a trial's time, from the spread of steps within trials. The median of normal values has
// 1.25 times the standard deviation of their mean.
double Tuner::LikelyNoise() const {
  if (spread_steps_ == 0) return kNoiseUnknown;
  const double of_step = std::sqrt(spread_ / spread_steps_);
  return std::max(kMinNoise, 1.25 * of_step / std::sqrt(options_.steps_per_trial));
}

Tuner::Event Tuner::Observe(double step_seconds) {
  if (settled_.has_value()) return WatchDrift(step_seconds);
  steps_.push_back(step_seconds);
  if (steps_.size() < options_.steps_per_trial && !IsHopeless()) return Event::kNone;
  EndTrial();
  return settled_.has_value() ? Event::kSettled : Event::kTrial;
}

bool Tuner::IsHopeless() const {
  if (!process_.has_value() || steps_.size() < kHopelessSteps) return false;
  const double best = std::exp(process_->At(Place(BestTried(*process_))).mean);
  return *std::min_element(steps_.begin(), steps_.end()) > kHopelessFactor * best;
}

void Tuner::EndTrial() {
  trial_ = {.number = ++trials_done_, .point = points_[current_], .seconds = Median(steps_)};
  if (process_.has_value()) trial_.predicted = std::exp(process_->At(Place(current_)).mean);
  for (const double step : steps_) spread_ += std::pow(std::log(step / trial_.seconds), 2);
  spread_steps_ += steps_.size() - 1;
  steps_.clear();
  tried_[current_].sum += std::log(std::max(trial_.seconds, 1e-9));
  ++tried_[current_].trials;
  process_.emplace(GaussianProcess::Fit(Observations(), LikelyNoise()));
  if (trials_done_ >= options_.trials) {
    Settle(*process_);
  } else {
    current_ = NextPoint(*process_);
  }
}

size_t Tuner::NextPoint(const GaussianProcess& process) const {
  if (expected_.empty() && trials_done_ <= kDesign && trials_done_ < options_.trials / 2) {
    return DesignPoint(trials_done_ - 1);
  }
  if (trials_done_ >= options_.trials - options_.trials * 3 / 20)
    return MostPromisingTried(process);
  const double best = process.At(Place(BestTried(process))).mean;
  size_t chosen = BestTried(process);
  double most = -1;
  for (size_t point = 0; point < points_.size(); ++point) {
    if (tried_[point].trials > 0) continue;
    const double gain = ExpectedImprovement(process.At(Place(point)), best);
    if (gain <= most) continue;
    chosen = point;
    most = gain;
  }
  return chosen;
}

size_t Tuner::BestTried(const GaussianProcess& process) const {
  size_t best = first_;
  for (size_t point = 0; point < points_.size(); ++point) {
    if (tried_[point].trials == 0) continue;
    if (process.At(Place(point)).mean < process.At(Place(best)).mean) best = point;
  }
  return best;
}

// The tried point with the lowest mean minus one standard deviation.
size_t Tuner::MostPromisingTried(const GaussianProcess& process) const {
  size_t chosen = first_;
  double least = std::numeric_limits<double>::infinity();
  for (size_t point = 0; point < points_.size(); ++point) {
    if (tried_[point].trials == 0) continue;
    const GpPrediction at = process.At(Place(point));
    if (at.mean - at.deviation >= least) continue;
    least = at.mean - at.deviation;
    chosen = point;
  }
  return chosen;
}

size_t Tuner::DesignPoint(uint32_t index) const {
  const auto by_partition = [](const SchedulePoint& a, const SchedulePoint& b) {
    return a.partition_bytes < b.partition_bytes;
  };
  const auto by_credit = [](const SchedulePoint& a, const SchedulePoint& b) {
    return a.credit_bytes < b.credit_bytes;
  };
  const auto [x0, x1] = std::minmax_element(points_.begin(), points_.end(), by_partition);
  const auto [y0, y1] = std::minmax_element(points_.begin(), points_.end(), by_credit);
  const auto between = [](uint64_t low, uint64_t high, double part) {
    return Octaves(low) + part * (Octaves(high) - Octaves(low));
  };
  const double x = between(x0->partition_bytes, x1->partition_bytes, kDesignPlaces[index][0]);
  const double y = between(y0->credit_bytes, y1->credit_bytes, kDesignPlaces[index][1]);
  const auto squared_distance = [&](const SchedulePoint& point) {
    const double dx = Octaves(point.partition_bytes) - x, dy = Octaves(point.credit_bytes) - y;
    return dx * dx + dy * dy;
  };
  const auto nearest = std::min_element(points_.begin(), points_.end(),
                                        [&](const SchedulePoint& a, const SchedulePoint& b) {
                                          return squared_distance(a) < squared_distance(b);
                                        });
  return static_cast<size_t>(nearest - points_.begin());
}

void Tuner::Settle(const GaussianProcess& process) {
  current_ = BestTried(process);
  settled_ = {.point = points_[current_],
              .seconds = std::exp(process.At(Place(current_)).mean),
              .first_seconds = std::exp(process.At(Place(first_)).mean),
              .trials = trials_done_};
  settled_median_ = 0;
}

Tuner::Event Tuner::WatchDrift(double step_seconds) {
  newest_.push_back(step_seconds);
  if (newest_.size() < window_) return Event::kNone;
  if (newest_.size() > window_) newest_.pop_front();
  newest_median_ = Median({newest_.begin(), newest_.end()});
  if (settled_median_ == 0) settled_median_ = newest_median_;
  const double most = settled_median_ * (1 + options_.drift);
  const double least = settled_median_ / (1 + options_.drift);
  drifted_ = newest_median_ > most || newest_median_ < least ? drifted_ + 1 : 0;
  if (drifted_ < window_) return Event::kNone;
  const double before = settled_median_;
  StartAgain();
  settled_median_ = before;
  return Event::kDrift;
}

}  // namespace tug
